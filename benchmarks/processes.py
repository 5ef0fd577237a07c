"""Runs a command and tells how long it took, on the clock and on the processors.

Neighbours: `workplace.py` (what the commands share), the benches that call it.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class CommandError(Exception):
    """A measured command failed; the message has its last lines."""


class CommandTimeoutError(CommandError):
    """A measured command took longer than it was given, and was ended."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock, seconds of CPU of the command and of all that it started, and the
    most memory (MB) that any one of these processes had resident."""

    wall_s: float
    cpu_s: float
    peak_mb: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.wall_s + other.wall_s,
            self.cpu_s + other.cpu_s,
            max(self.peak_mb, other.peak_mb),
        )


def measure(
    argv: Sequence[str],
    *,
    cwd: Path,
    variables: Mapping[str, str],
    log: Path,
    limit_s: float | None = None,
) -> Cost:
    """Run a command to its end, its output to `log`. Raises CommandError when it fails, and
    CommandTimeoutError when it is still at work after `limit_s`."""
    with log.open("wb") as out:
        began = time.perf_counter()
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=limit_s is not None,
        )
        timer = threading.Timer(limit_s or 0, os.killpg, (process.pid, signal.SIGKILL))
        if limit_s is not None:
            timer.start()
        # wait4 counts the descendants that were waited for too, which is all of them here: the
        # job wrapper reaps its servers and programs.
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if limit_s is not None and wall >= limit_s:
        raise CommandTimeoutError(f"{' '.join(argv)} took more than {limit_s:.0f} s")
    if process.returncode != 0:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:])
        raise CommandError(f"{' '.join(argv)} ended with {process.returncode}:\n{tail}")
    # Linux counts what this process held when it forked as the command's own.
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = usage.ru_maxrss if usage.ru_maxrss > 1.05 * held else math.nan
    return Cost(wall, usage.ru_utime + usage.ru_stime, peak / 1024)
