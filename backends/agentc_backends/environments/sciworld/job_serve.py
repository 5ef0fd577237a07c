"""Serves ScienceWorld until SIGTERM: `python -m agentc_backends.environments.sciworld.job_serve`.

Its JVMs end with it, however it ends.
"""

from __future__ import annotations

import atexit
import os
import sys
from functools import partial

from agentc_backends.environments.sciworld.environment import (
    ScienceWorldEnvironment,
    ScienceWorldShared,
)
from agentc_backends.environments.sciworld.java import NoJavaError, find_java
from agentc_backends.environments.sciworld.jvm import Jvm
from agentc_backends.environments.sciworld.pool import JvmPool
from agentc_backends.environments.sciworld.settings import SciworldSettings
from agentc_backends.environments.sciworld.splits import DEFAULT, read_splits
from agentc_backends.environments.server.environment import EnvironmentFailure
from agentc_backends.environments.server.program import Opener, program

_EPISODES_AT_ONCE = 64


def open_world(settings: SciworldSettings) -> Opener:
    splits = settings.splits
    if splits == DEFAULT:
        splits = read_splits(DEFAULT, (), lambda _: None)
    pool = JvmPool(
        partial(Jvm, find_java(), heap_mb=settings.heap_mb),
        processes=_processes(settings),
        episodes_at_once=_EPISODES_AT_ONCE,
        loads_each=settings.loads_each,
    )
    atexit.register(pool.close)
    # What is wrong with the simulator shows now, not in the middle of a run.
    pool.warm()
    return partial(ScienceWorldEnvironment, ScienceWorldShared(pool, settings, splits))


def _processes(settings: SciworldSettings) -> int:
    return settings.processes or len(os.sched_getaffinity(0))


_, main = program(
    SciworldSettings,
    open_world,
    refusals=(NoJavaError, EnvironmentFailure),
    most_sessions=lambda settings: _processes(settings) * _EPISODES_AT_ONCE,
)

if __name__ == "__main__":
    sys.exit(main())
