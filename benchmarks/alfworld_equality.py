"""ALFWorld's interpreter beside ALFWorld as released, command by command:
`python -m benchmarks.alfworld_equality --games DIR --rules GAME --journal FILE`.

Each game is played twice, by its own walkthrough and by a mixed walk of legal commands, the
explorer's and illegal ones. Observations, admissible commands and whether the game is won must be
the same after every command. The journal has a line for each game; what is in it is not played
again, so that a run can be ended at any time, and divided with --shard. `--report` adds it up.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentc_backends.environments.alfworld.expert import plan, recorded
from agentc_backends.environments.alfworld.games import HouseholdGame, make_game, part_file
from agentc_backends.environments.alfworld.play import WORDINGS, Play, Wording, is_reached
from agentc_backends.environments.alfworld.settings import PARTS
from benchmarks.alfworld_upstream.process import Rules, Upstream, read_rules, upstream_python

_NONSENSE = ("go to mars 1", "dance", "", "take", "open the door", "LOOK", "examine")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when everything is the same, 1 when something differs or nothing was compared."""
    options = _parser().parse_args(arguments)
    if not options.report:
        play(options)
    return report(journalled(options.journal))


def play(options: argparse.Namespace) -> None:
    """Add to the journal what is not in it."""
    python = upstream_python(build=True, report=print)
    assert python is not None
    rules = read_rules(options.rules)
    engine = "stock" if options.stock else "memoised"
    done = {_key(line) for line in journalled(options.journal)}

    def todo() -> Iterator[dict[str, Any]]:
        for row in chosen(options.games, options.part, options.every, options.shard):
            if (f"{row['task']}/{row['trial']}", rules.wording, engine) not in done:
                yield row

    total = sum(1 for _ in todo())
    began = time.monotonic()
    with Upstream(python, memoised=not options.stock) as upstream:
        for number, row in enumerate(todo(), 1):
            line = compared(upstream, rules, row, options.steps)
            with options.journal.open("a") as journal:
                journal.write(json.dumps({**line, "engine": engine}) + "\n")
            if line["difference"] or number % 50 == 0:
                left = (total - number) / number * (time.monotonic() - began) / 60
                print(f"{number} of {total}, {left:.0f} min left; {line['task_id']}: "
                      f"{line['difference'] or 'the same'}", flush=True)  # fmt: skip


def chosen(folder: Path, parts: list[str], every: int, shard: str) -> Iterator[dict[str, Any]]:
    """The rows of a folder's parts, one at a time; every N-th of them, and of these the shard's."""
    own, _, shards = shard.partition("/")
    number = 0
    for part in parts or PARTS:
        file = part_file(folder, part)
        with lzma.open(file) if file.suffix == ".xz" else file.open("rb") as lines:
            for line in lines:
                if number % every == 0 and number // every % int(shards) == int(own):
                    yield json.loads(line)
                number += 1


def compared(upstream: Upstream, rules: Rules, row: dict[str, Any], steps: int) -> dict[str, Any]:
    """Play a game in both; says where they differ first, if they do."""
    wording = WORDINGS[rules.wording]
    game = make_game(row["task"], row["trial"], row["task_desc"], row["pddl_problem"])
    episodes = [
        [step.action for step in recorded(game.house(), row["walkthrough"], wording)],
        mixed_walk(game, wording, steps),
    ]
    # Games leave out of a problem what their interpreter does not need, and TextWorld does.
    answer = upstream.play(rules, row["pddl_problem"], game.description, episodes)
    difference = None
    for commands, told in zip(episodes, answer["episodes"], strict=True):
        difference = difference or _difference(game, wording, commands, told)
    won = answer["episodes"][0][-1][2]
    if difference is None and not won:
        difference = "the walkthrough does not win"
    digest = hashlib.sha256(json.dumps(answer["episodes"]).encode()).hexdigest()
    return {
        "task_id": game.task_id,
        "wording": wording.name,
        "commands": [len(commands) for commands in episodes],
        "told_sha256": digest,
        "difference": difference,
        "seconds": {name: round(value, 4) for name, value in answer["seconds"].items()},
    }


def mixed_walk(game: HouseholdGame, wording: Wording, steps: int) -> list[str]:
    """Commands drawn by the game's name: legal ones, the explorer's, and some that are illegal."""
    draw = random.Random(f"walk/1/{game.task_id}")
    play = Play(game.house(), wording)
    expert = [step.action for step in plan(game.house(), wording, knows_all=False)]
    names = sorted(play.house.names.values())
    commands = []
    for _ in range(steps):
        legal, kind = sorted(play.legal()), draw.random()
        moving = [each for each in legal if not each.startswith(("go", "look", "inv", "help"))]
        if kind < 0.08:
            verb = draw.choice(("take {} from {}", "put {} in/on {}", "move {} to {}", "open {}",
                                "heat {} with {}", "use {}", "examine {}", "go to {}"))  # fmt: skip
            command = verb.format(*draw.choices(names, k=2))
        elif kind < 0.1:
            command = draw.choice(_NONSENSE)
        elif kind < 0.4 and expert:
            command = expert.pop(0)
        elif kind < 0.75 and moving:
            command = draw.choice(moving)
        else:
            command = draw.choice(legal)
        play.act(command)
        commands.append(command)
    return commands


def _difference(
    game: HouseholdGame, wording: Wording, commands: list[str], told: list[list[Any]]
) -> str | None:
    play = Play(game.house(), wording)
    says = f"{play.opening()}\n\n{game.description}"
    for number, (text, admissible, won) in enumerate(told):
        if number:
            says = play.act(commands[number - 1])[0]
        after = f"after {commands[:number]}"
        if says != text:
            return f"{after}: ours says {says!r}, theirs {text!r}"
        if (ours := sorted(play.legal())) != admissible:
            return f"{after}: admissible {sorted(set(ours) ^ set(admissible))} differ"
        if is_reached(play) != won:
            return f"{after}: won is {won} in theirs"
    return None


def report(lines: list[dict[str, Any]]) -> int:
    """Print what a journal adds up to; 0 when it holds something and all of it is the same."""
    told: dict[tuple[str, str], dict[str, str]] = {}
    print("| wording | TextWorld | games | walkthrough commands | mixed commands | differences |")
    print("|---|---|---|---|---|---|")
    counts: dict[tuple[str, str], Counter[str]] = {}
    for line in lines:
        task_id, wording, engine = _key(line)
        told.setdefault((task_id, wording), {})[engine] = line["told_sha256"]
        count = counts.setdefault((wording, engine), Counter())
        count.update(games=1, walkthrough=line["commands"][0], mixed=line["commands"][1],
                     differences=line["difference"] is not None)  # fmt: skip
    for (wording, engine), count in sorted(counts.items()):
        print(f"| {wording} | {engine} | {count['games']} | {count['walkthrough']} | "
              f"{count['mixed']} | {count['differences']} |")  # fmt: skip
    both = [each for each in told.values() if len(each) == 2]
    apart = sum(len(set(each.values())) > 1 for each in both)
    print(f"\n{len(both)} games were played by stock and memoised TextWorld; {apart} of them told "
          "something else")  # fmt: skip
    return int(not lines or apart > 0 or any(line["difference"] for line in lines))


def journalled(journal: Path) -> list[dict[str, Any]]:
    """Whole lines of a journal; one that was cut off is played again."""
    lines = []
    for line in journal.read_text().splitlines() if journal.exists() else ():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


def _key(line: dict[str, Any]) -> tuple[str, str, str]:
    return line["task_id"], line["wording"], line["engine"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.alfworld_equality", description=__doc__)
    parser.add_argument("--games", type=Path, help="folder of packed games")
    parser.add_argument("--rules", type=Path, help="a game.tw-pddl, or a folder with .pddl, .twl2")
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--part", action="append", default=[], choices=PARTS)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th game only")
    parser.add_argument("--shard", default="0/1", metavar="K/N", help="the K-th of N parts")
    parser.add_argument("--steps", type=int, default=20, help="commands of the mixed walk")
    parser.add_argument("--stock", action="store_true", help="TextWorld as it is, 6 times slower")
    parser.add_argument("--report", action="store_true", help="add the journal up and no more")
    return parser


if __name__ == "__main__":
    sys.exit(main())
