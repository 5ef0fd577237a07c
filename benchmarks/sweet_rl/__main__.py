"""`python -m benchmarks.sweet_rl STEP --folder F --seeds 0 1 ...`: the riskiest links of SWEET-RL.

`start` trains policies from scratch and collects; `critic` holds critics with and without hidden
information against Monte Carlo; `update` compares updates of the actor. What a seed has done is
kept in the folder, one JSON line for each result; `tables` prints them with intervals.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.sweet_rl.arms import CRITIC
from benchmarks.sweet_rl.seed import Settings, check_critics, compare_updates, start
from benchmarks.sweet_rl.tables import print_tables


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.sweet_rl", description=__doc__)
    parser.add_argument("step", choices=("start", "critic", "update", "tables"))
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument(
        "--steps", type=int, nargs="+", default=[400], help="of the first training, in stretches"
    )
    parser.add_argument(
        "--told", type=float, default=0.0, help="share of its dialogues behind the reference"
    )
    parser.add_argument("--custom", type=float, default=0.8)
    parser.add_argument(
        "--pairs", type=int, nargs="+", default=[100], help="of trajectories, for critics"
    )
    parser.add_argument("--critic-nll", type=float, default=CRITIC.nll_weight)
    parser.add_argument("--critic-epochs", type=int, default=CRITIC.epochs)
    parser.add_argument("--arms", nargs="+", default=[], metavar="ARM", help="default: all")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    options = parser.parse_args(arguments)
    if options.step == "tables":
        print_tables(options.folder)
        return 0
    critic = replace(CRITIC, nll_weight=options.critic_nll, epochs=options.critic_epochs)
    for seed in options.seeds:
        settings = Settings(
            folder=options.folder,
            seed=seed,
            steps=tuple(options.steps),
            custom=options.custom,
            critic=critic,
            told=options.told,
        )
        if options.step == "start":
            start(settings)
        elif options.step == "critic":
            check_critics(settings, options.pairs)
        else:
            compare_updates(settings, options.arms, options.pairs[0], options.split)
    return 0


if __name__ == "__main__":
    sys.exit(main())
