"""Serves a guessing game until SIGTERM: `python -m agentc_backends.guessing_games.job_serve`.

The server is that of `environment_server`; what is read here are the games' own options.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agentc_backends.environment_server.process import add_server_arguments, serve
from agentc_backends.guessing_games.dialogues import DialoguesError, read_dialogues
from agentc_backends.guessing_games.environment import GuessingEnvironment, World
from agentc_backends.guessing_games.games import (
    GAMES,
    OBJECTS,
    OBSERVATIONS,
    REWARDS,
    SPLITTINGS,
    Game,
    Rules,
)
from agentc_backends.guessing_games.judges import JUDGES
from agentc_backends.guessing_games.oracles import (
    INSTRUCTIONS,
    ORACLES,
    UNKNOWN,
    Oracle,
    RecordedOracle,
    ServerOracle,
    TableOracle,
)

KEY_VARIABLE = "AGENTC_ORACLE_KEY"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        open_environment = _opener(options)
    except (OSError, DialoguesError) as error:
        print(error, file=sys.stderr)
        return 2
    return serve(open_environment, options)


def opener(arguments: Sequence[str]) -> Callable[[], GuessingEnvironment]:
    """What opens the environment of these words in the process of whoever calls."""
    return _opener(_parser().parse_args(arguments))


def _opener(options: argparse.Namespace) -> Callable[[], GuessingEnvironment]:
    game = GAMES[options.game]
    rules = Rules(
        judge=options.judge,
        questions=options.questions,
        reward=options.reward,
        observation=options.observation,
        splits=options.splits,
        objects=options.objects,
    )
    return partial(GuessingEnvironment, World(game, rules, *_oracle(game, options)))


def _oracle(game: Game, options: argparse.Namespace) -> tuple[Oracle, dict[str, Any]]:
    """The oracle, and what the identity says of it."""
    if options.oracle == "server":
        told = {"kind": "server", "url": options.oracle_url, "model": options.oracle_model}
        key = os.environ.get(KEY_VARIABLE) or None
        instruction = INSTRUCTIONS[game.name]
        return ServerOracle(options.oracle_url, options.oracle_model, key, instruction), told
    table = TableOracle(game.load(), options.unknown)
    if options.oracle == "table":
        return table, {"kind": "table", "unknown": options.unknown}
    content = options.dialogues.read_bytes()
    told = {
        "kind": "recorded",
        "unknown": options.unknown,
        "dialogues_sha256": hashlib.sha256(content).hexdigest(),
        "min_similarity": options.min_similarity,
    }
    recorded = read_dialogues(content, game.load().guessable)
    return RecordedOracle(recorded, options.min_similarity, table), told


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="guessing_games.job_serve", description=__doc__)
    add_server_arguments(parser)
    parser.add_argument("--game", choices=tuple(GAMES), required=True)
    parser.add_argument("--judge", choices=JUDGES, default="strict_v2")
    parser.add_argument("--questions", type=int, default=20, help="until a game is over")
    parser.add_argument("--reward", choices=REWARDS, default="questions_left")
    parser.add_argument("--observation", choices=OBSERVATIONS, default="answer")
    parser.add_argument("--splits", choices=SPLITTINGS, default="held_out")
    parser.add_argument("--objects", choices=OBJECTS, default="all")
    parser.add_argument("--oracle", choices=ORACLES, default="table")
    parser.add_argument("--unknown", choices=tuple(UNKNOWN), default="invalid")
    parser.add_argument("--dialogues", type=Path, help="of the recorded oracle")
    parser.add_argument("--min-similarity", type=float, default=0.5)
    parser.add_argument("--oracle-url", default="")
    parser.add_argument("--oracle-model", default="")
    return parser


if __name__ == "__main__":
    sys.exit(main())
