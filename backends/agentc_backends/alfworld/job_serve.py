"""Serves ALFWorld until SIGTERM: `python -m agentc_backends.alfworld.job_serve`.

The server is that of `environment_server`; what is read here are ALFWorld's own options.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from agentc_backends.alfworld.environment import EXPERTS, AlfworldEnvironment, Options, Tasks
from agentc_backends.alfworld.games import Game, part_file, read_games
from agentc_backends.alfworld.invented import invented_games
from agentc_backends.alfworld.sizes import INVENTED, ROOMS, TASKS, invented_size
from agentc_backends.alfworld.splits import DEFAULT, Split, chosen_games, read_splits
from agentc_backends.alfworld.wording import WORDINGS
from agentc_backends.environment_server.process import add_server_arguments, serve

SPEC_DIRECTORY = "AGENTC_SPEC_DIR"
"""Environment variable: the directory of the spec, from which a relative path starts."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        open_environment = _opener(options)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return serve(open_environment, options)


def opener(arguments: Sequence[str]) -> Callable[[], AlfworldEnvironment]:
    """What opens the environment of these words in the process of whoever calls."""
    return _opener(_parser().parse_args(arguments))


def _opener(options: argparse.Namespace) -> Callable[[], AlfworldEnvironment]:
    tasks = load_tasks(
        options.games,
        options.splits,
        count=options.invented_games,
        seed=options.invented_seed,
        rooms=tuple(options.invented_rooms),
        kinds=tuple(options.invented_tasks),
    )
    rules = Options(
        options.wording, not options.whole_arrivals, options.expert, options.end_on_refusal
    )
    return partial(AlfworldEnvironment, tasks, rules)


def load_tasks(
    games: str,
    splits: str,
    *,
    count: int,
    seed: int,
    rooms: tuple[str, ...] = ROOMS,
    kinds: tuple[str, ...] = TASKS,
) -> Tasks:
    """The games of the splits (as JSON). Raises ValueError (GameError, SplitError)."""
    read = read_splits(json.loads(splits), _content)
    files: dict[str, str] = {}
    parts: dict[str, Sequence[Game]] = {}
    for part in dict.fromkeys(split.part for split in read.values()):
        if games == INVENTED:
            parts[part] = invented_games(part, invented_size(part, count), seed, rooms, kinds)
            continue
        file = part_file(_from_spec(games), part)
        content = file.read_bytes()
        files[part] = hashlib.sha256(content).hexdigest()
        wanted = _wanted(read, part)
        parts[part] = [
            game
            for game in read_games(content, file.name)
            if wanted is None or game.trial in wanted
        ]
    lines = {name: split.line() for name, split in read.items()}
    return Tasks(chosen_games(read, parts), files, lines)


def _wanted(splits: dict[str, Split], part: str) -> set[str] | None:
    """The trials of a part that any split lists; None when one takes them all."""
    listed = [split.trials for split in splits.values() if split.part == part]
    if any(trials is None for trials in listed):
        return None
    return {trial for trials in listed if trials is not None for trial in trials}


def _content(path: str) -> bytes | None:
    try:
        return _from_spec(path).read_bytes()
    except OSError:
        return None


def _from_spec(path: str) -> Path:
    return Path(os.environ.get(SPEC_DIRECTORY, ".")) / Path(path).expanduser()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="alfworld.job_serve", description=__doc__)
    add_server_arguments(parser)
    parser.add_argument("--games", default=INVENTED, help="folder of packed games")
    parser.add_argument("--splits", default=json.dumps(DEFAULT), help="as in a spec, in JSON")
    parser.add_argument("--invented-games", type=int, default=500, help="for training")
    parser.add_argument("--invented-seed", type=int, default=0)
    parser.add_argument("--invented-rooms", nargs="+", choices=ROOMS, default=ROOMS)
    parser.add_argument("--invented-tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--wording", choices=tuple(WORDINGS), default="put")
    parser.add_argument("--whole-arrivals", action="store_true", help="do not shorten them")
    parser.add_argument("--end-on-refusal", action="store_true", help="at the first idle action")
    parser.add_argument("--expert", choices=EXPERTS, default="explorer")
    return parser


if __name__ == "__main__":
    sys.exit(main())
