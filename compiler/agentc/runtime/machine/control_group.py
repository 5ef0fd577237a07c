"""The control group that this process is in: what memory it may use, and how many of its processes
the kernel has killed for using more. Linux, versions 1 and 2; elsewhere nothing is known.

Neighbours: `prologue.py` (was as much given as asked for?), `member.py` (why did a program end?).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 50
"""Groups without a limit say so with a word, or with a number beyond any machine's memory."""


def memory_limit() -> int | None:
    """The least limit of the group and those around it, in bytes."""
    limits = []
    for folder, root, modern in _groups():
        name = "memory.max" if modern else "memory.limit_in_bytes"
        for place in [folder, *folder.parents]:
            with suppress(OSError, ValueError):  # `max` is no number
                limits.append(int((place / name).read_text(encoding="ascii")))
            if place == root:
                break
    known = [limit for limit in limits if limit < _NO_LIMIT]
    return min(known) if known else None


def memory_kills() -> int:
    """Processes of the group that the kernel has killed for want of memory; 0 where unknown."""
    count = 0
    for folder, _, modern in _groups():
        with suppress(OSError, ValueError, IndexError):
            text = (folder / ("memory.events" if modern else "memory.oom_control")).read_text()
            words = text.split()
            count += int(words[words.index("oom_kill") + 1])
    return count


def out_of_memory(kills_before: int) -> str:
    """A sentence with cause and remedy when there were more since; else ""."""
    if memory_kills() <= kills_before:
        return ""
    limit = memory_limit()
    room = "" if limit is None else f" of {limit >> 20} MiB"
    return (
        f"it ran out of memory: the kernel killed a process for going over the limit{room}."
        " Raise `placement: {mem_mb: ...}` of the stage, or `mem_mb` in the profile"
    )


def _groups() -> list[tuple[Path, Path, bool]]:
    """Folders of the group with memory accounts, the root of each, whether it is version 2."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            found.append((_ROOT / path.lstrip("/"), _ROOT, True))
        elif "memory" in controllers.split(","):
            root = _ROOT / "memory"
            found.append((root / path.lstrip("/"), root, False))
    return found
