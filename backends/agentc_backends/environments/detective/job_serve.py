"""Serves Detective until SIGTERM: `python -m agentc_backends.environments.detective.job_serve`."""

from __future__ import annotations

import atexit
import os
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

from agentc_backends.environments.detective.environment import DetectiveEnvironment, DetectiveShared
from agentc_backends.environments.detective.game import (
    DetectiveGame,
    Interpreters,
    LegalActionCache,
    file_for,
)
from agentc_backends.environments.detective.settings import (
    DEFAULT_FILE,
    DETECTIVE,
    LEGAL_VERSION,
    WHERE,
    DetectiveSettings,
    Story,
    digest_of,
    story_of,
)
from agentc_backends.environments.server.environment import EnvironmentFailure
from agentc_backends.environments.server.program import Opener, program, spec_path


def open_world(settings: DetectiveSettings) -> Opener:
    """The interpreters end with this process."""
    file = spec_path(settings.game or DEFAULT_FILE)
    story = _story(file, settings.sha256 or DETECTIVE.sha256, settings.points)
    interpreters = Interpreters(
        file,
        story.scratch,
        processes=settings.processes or len(os.sched_getaffinity(0)),
        limit_s=settings.step_timeout_s,
    )
    atexit.register(interpreters.close)
    game = DetectiveGame(interpreters, LegalActionCache(_memory(story, settings.forget)))
    if game.points != story.points:
        raise ValueError(
            f"{file} says that {game.points} points can be gained in it, not {story.points}: "
            f"set `points: {game.points}`"
        )
    if settings.actions == "legal" and not game.supported:
        raise ValueError(
            f"jericho knows no grammar of {file}, so its legal actions cannot be found: set "
            "`actions: free`"
        )
    return partial(DetectiveEnvironment, DetectiveShared(game, story, settings))


def _story(file: Path, sha256: str, points: int | None) -> Story:
    """The game of the file. Raises ValueError where it is not the one that was planned."""
    try:
        found = digest_of(file.read_bytes())
    except OSError as error:
        wanted = f" {WHERE}" if sha256 == DETECTIVE.sha256 else ""
        raise ValueError(f"the game cannot be read: {error}.{wanted}") from error
    if found != sha256:
        wanted = f" {WHERE}" if sha256 == DETECTIVE.sha256 else ""
        raise ValueError(f"{file} has the SHA-256 {found}, expected was {sha256}.{wanted}")
    story = story_of(sha256, points)
    if story is None:
        raise ValueError(f"{file} is no known game: say by --points what can be gained in it")
    return story


def _memory(story: Story, forget: bool) -> Path | None:
    """The file of legal actions, which follow from the game, the interpreter and our way to ask."""
    if forget:
        return None
    made_of = f"{story.sha256} {story.scratch} {version('jericho')} {LEGAL_VERSION}"
    return file_for(f"{story.name}-{digest_of(made_of.encode())[:16]}")


opener, main = program(DetectiveSettings, open_world, refusals=(EnvironmentFailure,))

if __name__ == "__main__":
    sys.exit(main())
