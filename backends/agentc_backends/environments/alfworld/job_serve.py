"""Serves ALFWorld until SIGTERM: `python -m agentc_backends.environments.alfworld.job_serve`."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from functools import partial

from agentc_backends.environments.alfworld.environment import AlfworldEnvironment, Tasks
from agentc_backends.environments.alfworld.games import HouseholdGame, part_file, read_games
from agentc_backends.environments.alfworld.invented import invented_games
from agentc_backends.environments.alfworld.settings import (
    INVENTED,
    ROOMS,
    TASKS,
    AlfworldSettings,
    Split,
    chosen_games,
    invented_size,
    read_splits,
)
from agentc_backends.environments.server.program import Opener, program, spec_content, spec_path


def open_world(settings: AlfworldSettings) -> Opener:
    return partial(AlfworldEnvironment, load_tasks(settings), settings)


def load_tasks(settings: AlfworldSettings) -> Tasks:
    """The games of the splits. Raises ValueError (GameError, SplitError)."""
    read = read_splits(settings.splits, spec_content)
    files: dict[str, str] = {}
    parts: dict[str, Sequence[HouseholdGame]] = {}
    rooms, kinds = settings.invented_rooms or ROOMS, settings.invented_tasks or TASKS
    for part in dict.fromkeys(split.part for split in read.values()):
        if settings.games == INVENTED:
            size = invented_size(part, settings.invented_games)
            parts[part] = invented_games(part, size, settings.invented_seed, rooms, kinds)
            continue
        file = part_file(spec_path(settings.games), part)
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


opener, main = program(AlfworldSettings, open_world)

if __name__ == "__main__":
    sys.exit(main())
