"""Removes software environments: out of sight by one rename, so that none is ever half there."""

from __future__ import annotations

import fcntl
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from agentc.software.inventory import Installed

UNUSED_DAYS = 30


class EnvironmentInUseError(Exception):
    """A process works in the environment, or somebody builds it."""


def unused(found: Iterable[Installed], days: float = UNUSED_DAYS) -> tuple[Installed, ...]:
    """Those that no installed backend and no last plan names, and that nobody (other stores may
    share the folder) has used for so many days; half-built ones at once."""
    since = time.time() - days * 86400
    return tuple(
        one
        for one in found
        if one.state == "half-built"
        or (not one.users and one.state != "being built" and (one.used or 0.0) <= since)
    )


def remove_environment(one: Installed) -> None:
    """Delete it. Raises EnvironmentInUseError."""
    busy = _process_in(one.path)
    if busy is not None:
        raise EnvironmentInUseError(f"process {busy} runs in {one.label} ({one.path})")
    with one.path.with_name(one.digest + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EnvironmentInUseError(f"{one.label} is being built") from None
        trash = one.path.with_name(f".{one.digest}.trash")
        shutil.rmtree(trash, ignore_errors=True)
        one.path.rename(trash)
        shutil.rmtree(trash)


def _process_in(path: Path) -> int | None:
    """A process of this machine (and user) that was started with the environment's Python."""
    begins = f"{path}/bin/".encode()
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes().startswith(begins):
                    return int(entry.name)
            except OSError:
                continue
    return None
