"""`python -m benchmarks.archer_released --checkout DIR [--rounds N] [--steps N] [--draws N]`, in an
interpreter with torch and accelerate; DIR is a checkout of ArCHer's released code.

Prints how far both trainers' numbers are apart after the same steps, whether replies have one law,
and the seconds of each for a step of the critic and of the policy, by turns, on one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import tempfile
from pathlib import Path

import torch

from agentc_backends.data.models.checkpoint import configure_libraries
from benchmarks.archer_released.parity import (
    AS_MEANT,
    AS_RELEASED,
    choices_differ,
    compare_updates,
    in_float64,
    replies_alike,
)
from benchmarks.archer_released.speed import Spent, our_spent, released_spent
from benchmarks.archer_released.tiny import games, make_models

CRITIC_STEPS, ACTOR_STEPS = 50, 3
"""Of an iteration, as released."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.archer_released", description=__doc__)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--draws", type=int, default=20000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    configure_libraries()
    checkout = options.checkout.resolve()
    played = games(128, seed=0)
    told = [one for game in played for one in game]
    with tempfile.TemporaryDirectory() as folder:
        texts = sorted({one.following for one in told} | {"yes\n", "no\n", "perhaps\n"})
        policy, encoder = make_models(Path(folder), texts, played, seed=0)
        print("| after the same steps | as meant | as released |\n|---|---|---|")
        with in_float64():
            meant, released = (
                _quiet(compare_updates(checkout, policy, encoder, told, ways))
                for ways in (AS_MEANT, AS_RELEASED)
            )
        for (name, apart), (_, as_released) in zip(meant, released, strict=True):
            print(f"| {name} | {apart:.2g} | {as_released:.2g} |")
        differing = choices_differ(2000)
        print(f"| the best tenth, of 2000 sets of returns | {differing} differ |\n")
        table, p = replies_alike(checkout, policy, encoder, options.draws)
        print(f"replies {table}: chi-square p = {p:.3f}\n")
        print("| | critic step | policy step | passes of the policy for a critic step |"
              " an iteration of 50 and 3 |\n|---|---|---|---|---|")  # fmt: skip
        rounds: dict[str, list[Spent]] = {}
        for _ in range(options.rounds):
            with contextlib.redirect_stdout(io.StringIO()):
                spent = {
                    "released": released_spent(checkout, policy, encoder, played, options.steps),
                    "ours, the same encoder": our_spent(policy, encoder, played, options.steps),
                    "ours, the policy's body": our_spent(policy, None, played, options.steps),
                    "ours, the policy's body, whole episodes": our_spent(
                        policy, None, played, options.steps, "episodes"
                    ),
                }
            for name, one in spent.items():
                rounds.setdefault(name, []).append(one)
        for name, each in rounds.items():
            critic = statistics.median(one.critic_s for one in each)
            actor = statistics.median(one.actor_s for one in each)
            whole = CRITIC_STEPS * critic + ACTOR_STEPS * actor
            passes = statistics.median(one.passes for one in each)
            print(f"| {name} | {critic:.2f} s | {actor:.2f} s | {passes:.0f} | {whole:.0f} s |")


def _quiet(found: object) -> list[tuple[str, float]]:
    """The released trainer prints as it goes."""
    with contextlib.redirect_stdout(io.StringIO()):
        return [*found]  # type: ignore[misc]


if __name__ == "__main__":
    main()
