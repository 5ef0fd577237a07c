"""Serves the corridor until SIGTERM, as `python -m` of this module."""

from __future__ import annotations

import sys
from functools import partial

from agentc_backends.environments.corridor.environment import CorridorEnvironment
from agentc_backends.environments.corridor.settings import CorridorSettings
from agentc_backends.environments.server.program import Opener, program


def open_world(settings: CorridorSettings) -> Opener:
    return partial(CorridorEnvironment, settings)


opener, main = program(CorridorSettings, open_world)

if __name__ == "__main__":
    sys.exit(main())
