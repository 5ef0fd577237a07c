"""Serves the corridor until SIGTERM, as `python -m` of this module."""

from __future__ import annotations

import sys

from agentc_backends.environments.corridor.environment import CorridorEnvironment
from agentc_backends.environments.corridor.settings import CorridorSettings
from agentc_backends.environments.server.program import per_session, program

opener, main = program(CorridorSettings, per_session(CorridorEnvironment))

if __name__ == "__main__":
    sys.exit(main())
