"""Files in /dev/shm that killed programs leave behind: nobody else removes them, and they are main
memory until the machine restarts."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from agentc.runtime.machine.process import all_processes

_FOLDER = "/dev/shm/"


def mapped_by(groups: Collection[int]) -> set[str]:
    """The files there that processes of these groups have mapped."""
    found: set[str] = set()
    for pid in all_processes():
        with suppress(OSError):
            if os.getpgid(pid) in groups:
                found |= _mapped(pid)
    return found


def remove_unused(paths: Collection[str]) -> None:
    """Remove those of our user that no process has mapped any more."""
    left = {path for path in paths if _is_ours(path)}
    if not left:
        return
    for pid in all_processes():
        with suppress(OSError):
            left -= _mapped(pid)
    for path in left:
        with suppress(OSError):
            Path(path).unlink()


def _mapped(pid: int) -> set[str]:
    found = set()
    for line in Path(f"/proc/{pid}/maps").read_bytes().splitlines():
        at = line.find(_FOLDER.encode())
        if at >= 0:
            found.add(line[at:].decode("utf-8", "surrogateescape"))
    return {path for path in found if not path.endswith(" (deleted)")}


def _is_ours(path: str) -> bool:
    try:
        return Path(path).lstat().st_uid == os.getuid()
    except OSError:
        return False
