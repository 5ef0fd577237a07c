"""The memory that a process holds for itself, watched from outside: neighbours `memory.py` and
`training_jobs.py`.

The kernel's own peak (ru_maxrss, VmHWM) counts pages of files as well, libraries above all, and
takes those back that have not been touched for a while: the same program has a peak that is 150 MB
lower where it runs slowly. What is anonymous or shared stays, since there is nowhere to write it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_EVERY_S = 0.005
_OFTEN = -10
"""Niceness of the thread that looks, where it may be chosen."""


class HeldMemory:
    """Watches a process and its descendants while its `with` block runs; `peaks` are bytes, by
    number of the process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.peaks: dict[int, int] = {}
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> HeldMemory:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()

    def _look(self) -> None:
        with suppress(OSError):  # a peak may be short, and the machine busy
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _OFTEN)
        while True:
            for pid in (self.pid, *descendants(self.pid)):
                self.peaks[pid] = max(self.peaks.get(pid, 0), held(pid))
            if self._over.wait(_EVERY_S):
                return


def held(pid: int) -> int:
    """Bytes that are no file's, now; 0 where the process is gone."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        names = ("RssAnon:", "RssShmem:")
        return sum(int(line.split()[1]) for line in lines if line.startswith(names)) * 1024
    return 0


def mapped(pid: int, ending: str) -> int:
    """Bytes of files of that name that a process and its descendants have in memory as they lie on
    disk, such as weights that nobody changes; 0 where the process is gone."""
    total = 0
    for each in (pid, *descendants(pid)):
        counted = False
        with suppress(OSError):
            for line in Path(f"/proc/{each}/smaps").read_text(encoding="utf-8").splitlines():
                words = line.split()
                if not words[0].endswith(":"):
                    counted = words[-1].endswith(ending)
                elif counted and words[0] == "Rss:":
                    total += int(words[1]) * 1024
    return total


def descendants(pid: int) -> Iterator[int]:
    """Children of a process, and theirs."""
    with suppress(OSError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for each in map(int, children.read_text(encoding="utf-8").split()):
                yield each
                yield from descendants(each)
