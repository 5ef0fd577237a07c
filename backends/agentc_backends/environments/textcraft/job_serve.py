"""Serves TextCraft until SIGTERM: `python -m agentc_backends.environments.textcraft.job_serve`."""

from __future__ import annotations

import sys
from functools import partial

from agentc_backends.environments.server.program import Opener, program
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment
from agentc_backends.environments.textcraft.recipe_files import RecipesNotFoundError
from agentc_backends.environments.textcraft.settings import TextCraftSettings


def open_world(settings: TextCraftSettings) -> Opener:
    return partial(TextCraftEnvironment, settings)


opener, main = program(TextCraftSettings, open_world, refusals=(RecipesNotFoundError,))

if __name__ == "__main__":
    sys.exit(main())
