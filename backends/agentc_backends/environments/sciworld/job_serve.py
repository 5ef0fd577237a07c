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

_EPISODES = 64
"""At once, for each of `processes`."""
_EPISODE_MB = 16
"""Of a JVM's memory for each episode: one holds 6 to 13 MB (one of each task 338 in all), and a JVM
that is nearly full does little but look for memory."""


def open_world(settings: SciworldSettings) -> Opener:
    splits = settings.splits
    if splits == DEFAULT:
        splits = read_splits(DEFAULT, (), lambda _: None)
    each = settings.heap_mb // _EPISODE_MB
    pool = JvmPool(
        partial(Jvm, find_java(), heap_mb=settings.heap_mb),
        processes=_processes(settings),
        episodes_at_once=each,
        most_processes=-(-_processes(settings) * _EPISODES // each),
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
    most_sessions=lambda settings: _processes(settings) * _EPISODES,
)

if __name__ == "__main__":
    sys.exit(main())
