"""Serves the corridor until SIGTERM, as `python -m` of this module."""

from __future__ import annotations

import sys

from agentc_backends.environments.corridor.environment import CorridorEnvironment
from agentc_backends.environments.corridor.settings import CorridorSettings
from agentc_backends.environments.server.program import opened_anew, program

opener, main = program(CorridorSettings, opened_anew(CorridorEnvironment))

if __name__ == "__main__":
    sys.exit(main())
