"""Serves Detective until SIGTERM: `python -m agentc_backends.detective.job_serve`.

The server is that of `environment_server`; what is read here are the game's own options. A relative
path starts in AGENTC_SPEC_DIR, the folder of the spec, where it is set.
"""

from __future__ import annotations

import argparse
import atexit
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from agentc_backends.detective.environment import ACTIONS, DetectiveEnvironment, Rules, World
from agentc_backends.detective.game import Game
from agentc_backends.detective.interpreters import Interpreters
from agentc_backends.detective.remembered import Remembered, file_for
from agentc_backends.detective.stories import (
    DEFAULT_FILE,
    DETECTIVE,
    LEGAL_VERSION,
    WHERE,
    Story,
    digest_of,
    story_of,
)
from agentc_backends.environment_server.environment import EnvironmentFailure
from agentc_backends.environment_server.process import add_server_arguments, serve

SPEC_DIRECTORY = "AGENTC_SPEC_DIR"
"""Environment variable: the directory of the spec, from which a relative path starts."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        open_environment = _opener(options)
    except (ValueError, EnvironmentFailure) as error:
        print(error, file=sys.stderr)
        return 2
    return serve(open_environment, options)


def opener(arguments: Sequence[str]) -> Callable[[], DetectiveEnvironment]:
    """What opens the environment of these words; the interpreters end with this process."""
    return _opener(_parser().parse_args(arguments))


def _opener(options: argparse.Namespace) -> Callable[[], DetectiveEnvironment]:
    file = Path(os.environ.get(SPEC_DIRECTORY, ""), options.game).expanduser()
    story = _story(file, options.sha256, options.points)
    interpreters = Interpreters(
        file,
        story.scratch,
        processes=options.processes or len(os.sched_getaffinity(0)),
        limit_s=options.step_timeout,
    )
    atexit.register(interpreters.close)
    game = Game(interpreters, Remembered(_memory(story, options.forget)))
    if game.points != story.points:
        raise ValueError(
            f"{file} says that {game.points} points can be gained in it, not {story.points}: "
            f"set `points: {game.points}`"
        )
    if options.actions == "legal" and not game.supported:
        raise ValueError(
            f"jericho knows no grammar of {file}, so its legal actions cannot be found: set "
            "`actions: free`"
        )
    world = World(game, story, Rules(actions=options.actions, max_steps=options.max_steps))
    return partial(DetectiveEnvironment, world)


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="detective.job_serve", description=__doc__)
    add_server_arguments(parser)
    parser.add_argument("--game", default=DEFAULT_FILE, help="the game file")
    parser.add_argument("--sha256", default=DETECTIVE.sha256, help="of the game file")
    parser.add_argument("--points", type=int, help="that an unknown game can give")
    parser.add_argument("--actions", choices=ACTIONS, default="legal")
    parser.add_argument("--max-steps", type=int, default=60, help="of an episode")
    parser.add_argument("--processes", type=int, default=0, help="0: one for each core")
    parser.add_argument("--forget", action="store_true", help="find all legal actions anew")
    parser.add_argument("--step-timeout", type=float, default=5.0, help="seconds of processor "
                        "time for a request")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
