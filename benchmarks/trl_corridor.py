"""GRPO and RLOO by `trl.online_rl`'s learner on the corridor: `python -m benchmarks.trl_corridor
--seeds 1 2 3` in an interpreter with torch and TRL.

A policy of two layers of 32 imitates somebody who wanders, reads its whole conversation, and learns
from groups of its own episodes. Printed: the mean return of 200 sampled episodes before and after,
with the standard error of the episodes (docs/design/archer.md).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch
from tests.torch.online_rl.wanderer import wandering_model

from agentc_backends.data.models.checkpoint import configure_libraries
from agentc_backends.trainers.online_rl.learning import ACTOR, Learning
from agentc_backends.trainers.online_rl.replay import ReplayBuffer
from agentc_backends.trainers.online_rl.settings import Algorithm, GroupPhase
from agentc_backends.trainers.online_rl.trl import TrlLearner
from benchmarks.corridor_players import Players

EPISODES, GROUP, LONGEST, JUDGED = 16, 8, 10, 200
ALGORITHMS: tuple[Algorithm, ...] = ("grpo", "rloo")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.trl_corridor", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2e-3)
    options = parser.parse_args()
    configure_libraries()
    torch.set_num_threads(1)
    print("| algorithm | seed | start | end | CPU s |")
    print("|---|---|---|---|---|", flush=True)
    for seed in options.seeds:
        for algorithm in ALGORITHMS:
            with tempfile.TemporaryDirectory() as name:
                policy = wandering_model(Path(name), seed)
                began = time.process_time()
                start, end = learn(
                    policy, algorithm, seed, options.iterations, options.updates, options.lr
                )
            taken = time.process_time() - began
            print(f"| {algorithm} | {seed} | {start} | {end} | {taken:.0f} |", flush=True)


def learn(
    folder: Path,
    algorithm: Algorithm,
    seed: int,
    iterations: int,
    updates: int,
    lr: float,
) -> tuple[str, str]:
    """Mean returns before and after, as texts."""
    players = Players(folder)
    learner = TrlLearner(
        Learning(
            policy=players.policy, tokenizer=players.tokenizer, sampler=players.sampler,
            decode=players.decode, seed=seed, micro_batch=EPISODES,
        ),
        GroupPhase(
            algorithm=algorithm, episodes=EPISODES, group=GROUP, lr=lr, updates=updates,
            minibatches=2, max_grad_norm=1.0, beta=0.0, clip_low=0.2, clip_high=0.2,
        ),
    )  # fmt: skip
    start = judged(players, seed)
    buffer = ReplayBuffer(10_000, 1.0, EPISODES)
    for iteration in range(iterations):
        buffer.add(players.play(seed * 1000 + iteration, EPISODES, LONGEST))
        learner.learn(ACTOR, iteration, buffer)
    return start, judged(players, seed)


def judged(players: Players, seed: int) -> str:
    """Of episodes that nothing is learnt from."""
    found = [one.total for one in players.play(seed * 1000 + 999, JUDGED, LONGEST)]
    return f"{statistics.fmean(found):.2f} +- {statistics.stdev(found) / JUDGED**0.5:.2f}"


if __name__ == "__main__":
    main()
