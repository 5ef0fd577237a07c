"""The riskiest links of SWEET-RL (Zhou et al. 2025) in bare PyTorch, before any stage of a spec.

`python -m benchmarks.sweet_rl` runs them; `notes/sweet_rl.md` holds what it printed.
"""
