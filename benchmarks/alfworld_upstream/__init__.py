"""ALFWorld as released, in a process of its own: what ours is compared with.

`upstream.lock` is its software stack (Fast Downward and jericho are GPL, and stay there),
`play_games.py` the program that runs in it, `memoised.py` what makes it faster, `process.py` our
end. Users: `benchmarks/alfworld.py` (speed) and `benchmarks/alfworld_equality.py`.
"""
