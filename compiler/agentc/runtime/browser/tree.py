"""What a process and all that it started use: memory of their own, and processor time."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PAGE, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
_PARENT, _USER, _SYSTEM = 1, 11, 12
"""Of /proc/PID/stat, after the name."""


class TreeUse(NamedTuple):
    """Bytes that no file backs, and seconds of those processes that still live."""

    memory: int
    seconds: float


def use_of_tree(root: int) -> TreeUse:
    """Zero where it has ended."""
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - each look counts, there are many
        if entry.isdigit():
            with suppress(OSError):
                text = Path("/proc", entry, "stat").read_text(errors="replace")
                fields = text.rpartition(")")[2].split()
                children.setdefault(int(fields[_PARENT]), []).append(int(entry))
                seconds[int(entry)] = (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
    memory, spent, left = 0, 0.0, [root]
    while left:
        pid = left.pop()
        left += children.get(pid, [])
        spent += seconds.get(pid, 0.0)
        with suppress(OSError):
            held = Path("/proc", str(pid), "statm").read_text().split()
            memory += (int(held[1]) - int(held[2])) * _PAGE
    return TreeUse(memory, spent)
