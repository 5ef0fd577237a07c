"""ALFWorld's interpreter beside ALFWorld as released, in one run:
`python -m benchmarks.alfworld --games DIR --rules GAME`.

Both play the same commands of the same games on one core, one after the other: the walkthroughs
and mixed walks of `alfworld_equality.py`, which says whether they also tell the same. After every
step both list the admissible commands. A new game is what has to be read and made ready before
its first observation; a reset is the same game again. Seconds are of CPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from agentc_backends.environments.alfworld.expert import recorded
from agentc_backends.environments.alfworld.games import (
    HouseholdGame,
    build_house,
    make_game,
    read_problem,
)
from agentc_backends.environments.alfworld.play import WORDINGS, Play, Wording, is_reached
from benchmarks.alfworld_equality import chosen, mixed_walk
from benchmarks.alfworld_upstream.process import Upstream, read_rules, upstream_python

_REPEATS = 20


def main() -> int:
    """0, and a table."""
    options = _parser().parse_args()
    python = upstream_python(build=True, report=print)
    assert python is not None
    rules = read_rules(options.rules)
    wording = WORDINGS[rules.wording]
    rows = list(rows_of(options.games, options.count))
    told: dict[str, list[float]] = {name: [] for name in ("load", "reset", "steps")}
    ours: dict[str, list[float]] = {name: [] for name in told}
    commands = 0
    with Upstream(python, memoised=False) as upstream:
        for number, row in enumerate(rows):
            game = make_game(row["task"], row["trial"], row["task_desc"], row["pddl_problem"])
            walks = [[step.action for step in recorded(game.house(), row["walkthrough"], wording)],
                     mixed_walk(game, wording, options.steps)]  # fmt: skip
            answer = upstream.play(rules, row["pddl_problem"], game.description, walks)
            if number == 0:  # its imports and the first parse of the grammar are not a game's
                continue
            commands += sum(map(len, walks))
            for name, value in answer["seconds"].items():
                told[name].append(value)
            for name, value in measured(game, row["pddl_problem"], wording, walks).items():
                ours[name].append(value)
    new = [median([a + b for a, b in zip(each["load"], each["reset"], strict=True)])
           for each in (told, ours)]  # fmt: skip
    again = [median(each["reset"]) for each in (told, ours)]
    rate = [commands / sum(each["steps"]) for each in (told, ours)]
    print(f"{len(rows) - 1} games, {commands} commands, wording `{wording.name}`\n")
    print("| | TextWorld | ours | ratio |\n|---|---|---|---|")
    for name, (theirs, own) in {"a new game": new, "a reset": again}.items():
        print(f"| {name} | {theirs:.2f} s | {1000 * own:.2f} ms | {theirs / own:.0f} |")
    print(f"| steps a second | {rate[0]:.0f} | {rate[1]:.0f} | {rate[1] / rate[0]:.0f} |")
    return 0


def rows_of(folder: Path, count: int) -> Iterator[dict[str, Any]]:
    """Rows of unseen games, spread over all of them; one more, to warm up with."""
    rows = list(chosen(folder, ["valid_unseen"], 1, "0/1"))
    return iter(rows[:: max(1, len(rows) // (count + 1))][: count + 1])


def measured(
    game: HouseholdGame, problem: str, wording: Wording, walks: list[list[str]]
) -> dict[str, float]:
    """Seconds of our interpreter for one game, each the mean of a few repeats."""
    house = game.house()

    def steps() -> None:
        for walk in walks:
            play = Play(house, wording)
            for command in walk:
                play.act(command)
                sorted(play.legal())
                is_reached(play)

    def reset() -> None:
        play = Play(house, wording)
        play.opening()
        sorted(play.legal())
        is_reached(play)

    return {
        "load": seconds_of(lambda: build_house(read_problem(problem))),
        "reset": seconds_of(reset),
        "steps": seconds_of(steps),
    }


def seconds_of(work: Callable[[], object]) -> float:
    began = time.process_time()
    for _ in range(_REPEATS):
        work()
    return (time.process_time() - began) / _REPEATS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.alfworld", description=__doc__)
    parser.add_argument("--games", type=Path, required=True, help="folder of packed games")
    parser.add_argument("--rules", type=Path, required=True,
                        help="a game.tw-pddl, or a folder with .pddl and .twl2")  # fmt: skip
    parser.add_argument("--count", type=int, default=5, help="games to play")
    parser.add_argument("--steps", type=int, default=20, help="commands of each mixed walk")
    return parser


if __name__ == "__main__":
    sys.exit(main())
