"""Core leases: servers of one machine that bind threads to cores bind them to different ones.

A lease is a lock on a file for each core, in the folder of the GPUs' (`device_lease.py`). Nobody
waits for one: where too few cores are free, a server's threads stay unbound and the kernel places
them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agentc.runtime.machine.device_lease import prepare_locks, try_lock

CORES_VARIABLE = "AGENTC_CORES"
"""The cores that a server's program may bind its threads to: `0,1,5`; without it, none."""
_TRIES, _PAUSE_S = 100, 0.05
_TOPOLOGY = "/sys/devices/system/cpu/cpu%d/topology/%s"


def allowed_cores() -> list[int]:
    """The cores that this process may run on, in the order in which to take them: one of each
    physical core first, those of one socket next to each other."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    cores = sorted(os.sched_getaffinity(0))
    seen: dict[str, int] = {}
    keys: dict[int, tuple[int, int, int]] = {}
    for core in cores:
        siblings = _topology(core, "thread_siblings_list") or str(core)
        sibling = seen[siblings] = seen.get(siblings, -1) + 1
        socket = _topology(core, "physical_package_id")
        keys[core] = (sibling, int(socket) if socket.lstrip("-").isdigit() else 0, core)
    return sorted(cores, key=lambda core: keys[core])


class CoreLease:
    """Cores of one server, held until `release` or the end of this process."""

    def __init__(self, folder: Path) -> None:
        self.cores: tuple[int, ...] = ()
        self._folder = folder
        self._descriptors: list[int] = []

    def acquire(self, count: int, cores: Sequence[int]) -> tuple[int, ...]:
        """Take the first `count` of these cores that no other server has; none of them where fewer
        are free, or where the locks cannot be used."""
        self.release()
        taken: list[int] = []
        with suppress(OSError):
            prepare_locks(self._folder)
            choosing = self._choosing()
            try:
                for core in cores if choosing is not None else ():
                    if len(taken) == count:
                        break
                    descriptor = try_lock(self._folder / (f"core-{core}.lock"))
                    if descriptor is not None:
                        self._descriptors.append(descriptor)
                        taken.append(core)
            finally:
                if choosing is not None:
                    os.close(choosing)
        if len(taken) < count:
            self.release()
            return ()
        self.cores = tuple(taken)
        return self.cores

    def _choosing(self) -> int | None:
        """One chooses at a time: of two servers that each need two cores of two, one gets both."""
        for _ in range(_TRIES):
            descriptor = try_lock(self._folder / "choosing-cores.lock")
            if descriptor is not None:
                return descriptor
            time.sleep(_PAUSE_S)
        return None

    def release(self) -> None:
        """Let go."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors, self.cores = [], ()


def _topology(core: int, name: str) -> str:
    try:
        return Path(_TOPOLOGY % (core, name)).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
