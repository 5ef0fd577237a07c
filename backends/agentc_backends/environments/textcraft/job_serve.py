"""Serves TextCraft until SIGTERM: `python -m agentc_backends.environments.textcraft.job_serve`."""

from __future__ import annotations

import sys

from agentc_backends.environments.server.program import per_session, program
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment
from agentc_backends.environments.textcraft.recipes import RecipesNotFoundError
from agentc_backends.environments.textcraft.settings import TextCraftSettings

opener, main = program(
    TextCraftSettings, per_session(TextCraftEnvironment), refusals=(RecipesNotFoundError,)
)

if __name__ == "__main__":
    sys.exit(main())
