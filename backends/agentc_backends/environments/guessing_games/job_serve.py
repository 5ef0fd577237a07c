"""Serves a guessing game until SIGTERM, as `python -m` of this module."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from agentc_backends.environments.guessing_games.environment import (
    GuessingEnvironment,
    GuessingShared,
)
from agentc_backends.environments.guessing_games.games import GAMES
from agentc_backends.environments.guessing_games.oracles import (
    INSTRUCTIONS,
    DialoguesError,
    ModelOracle,
    Oracle,
    RecordedOracle,
    ServerOracle,
    TableOracle,
    read_dialogues,
)
from agentc_backends.environments.guessing_games.settings import GuessingSettings
from agentc_backends.environments.server.model_services import ModelService
from agentc_backends.environments.server.program import Opener, program

KEY_VARIABLE = "AGENTC_ORACLE_KEY"


def open_world(settings: GuessingSettings) -> Opener:
    world = GuessingShared(GAMES[settings.game], settings, *_oracle(settings))
    return partial(GuessingEnvironment, world)


def _oracle(settings: GuessingSettings) -> tuple[Oracle, dict[str, Any]]:
    """The oracle, and what the identity says of it."""
    game = GAMES[settings.game]
    if settings.oracle == "model":
        return ModelOracle(ModelService("simulator"), INSTRUCTIONS[game.name]), {"kind": "model"}
    if settings.oracle == "server":
        url, model = settings.oracle_url or "", settings.oracle_model or ""
        key = os.environ.get(KEY_VARIABLE) or None
        oracle = ServerOracle(url, model, key, INSTRUCTIONS[game.name])
        return oracle, {"kind": "server", "url": url, "model": model}
    table = TableOracle(game.load(), settings.unknown)
    if settings.oracle == "table":
        return table, {"kind": "table", "unknown": settings.unknown}
    content = Path(settings.dialogues or "").read_bytes()
    told = {
        "kind": "recorded",
        "unknown": settings.unknown,
        "dialogues_sha256": hashlib.sha256(content).hexdigest(),
        "min_similarity": settings.min_similarity,
    }
    recorded = read_dialogues(content, game.load().guessable)
    return RecordedOracle(recorded, settings.min_similarity, table), told


opener, main = program(GuessingSettings, open_world, refusals=(OSError, DialoguesError))

if __name__ == "__main__":
    sys.exit(main())
