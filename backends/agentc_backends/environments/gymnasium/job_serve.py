"""Serves an environment of gymnasium's until SIGTERM, as `python -m` of this module."""

from __future__ import annotations

import sys
from functools import partial

from agentc_backends.environments.gymnasium.environment import GymnasiumEnvironment, facts_of
from agentc_backends.environments.gymnasium.settings import GymnasiumSettings
from agentc_backends.environments.server.program import Opener, program


def open_world(settings: GymnasiumSettings) -> Opener:
    return partial(GymnasiumEnvironment, facts_of(settings))


opener, main = program(GymnasiumSettings, open_world)

if __name__ == "__main__":
    sys.exit(main())
