"""Seeds are a published function: changing it changes results, so it is pinned."""

from agentc_backends.agents.common.seeds import episode_seed, turn_seed


def test_seeds_are_pinned() -> None:
    assert episode_seed(0, "minecraft:stick", 0) == 1908469976
    assert turn_seed(1908469976, 0) == 1459317255


def test_seeds_differ_by_everything_they_are_derived_from() -> None:
    seeds = [
        episode_seed(stage, task, attempt)
        for stage in range(3)
        for task in ("a", "b", "1/a")
        for attempt in range(3)
    ]
    assert len(set(seeds)) == len(seeds)
    assert len({turn_seed(seeds[0], turn) for turn in range(50)}) == 50
    assert all(0 <= seed < 2**31 for seed in seeds)
