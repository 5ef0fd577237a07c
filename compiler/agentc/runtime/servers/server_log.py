"""The log of a server as people read it: the cause of a failure, and the last lines, of one start.

A log is appended over starts, so that every reader says where the start in question begins. What a
backend knows of its server's log (`causes`, `noise` of a lease) comes with the plan.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc.runtime.machine.output_filters import printable

LAST_LINES = 20
FEW_LINES = 8
"""So many where the cause is known."""
_MOST_BYTES = 4 << 20
"""More of one start is not read: what a server writes before it fails is far shorter."""
_END_BYTES = 1 << 16
_LONGEST = 600
_TRACEBACK = re.compile(r"^(?P<prefix>.*?)Traceback \(most recent call last\):\s*$")


def size_of(log: Path) -> int:
    """Where the next start begins in a log: its length, 0 when there is none."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def last_lines(log: Path, count: int, begins: int = 0) -> str:
    """The last lines of a log from the byte `begins` on, or "" when there is none."""
    return "\n".join(_read(log, begins, _END_BYTES)[-count:])


def describe_log(log: Path, spec: Mapping[str, Any], begins: int = 0) -> str:
    """The end of a message about a server: the cause that its log names since `begins`, by the
    patterns of the lease, and the last lines."""
    lines = _read(log, begins, _MOST_BYTES)
    if not lines:
        return f"; it wrote no log ({log})"
    cause = find_cause(lines, spec.get("causes") or ())
    kept = _worth_reading(lines, spec.get("noise") or ())
    shown = [_cut(line, _LONGEST) for line in kept[-(FEW_LINES if cause else LAST_LINES) :]]
    told = ": " + cause if cause else ""
    if not shown:
        return f"{told}; its log: {log}"
    return "{}; its last lines ({}):\n{}".format(told, log, "\n".join(shown))


def find_cause(lines: Sequence[str], patterns: Sequence[str]) -> str:
    """What the first line says that matches the first pattern that any line matches: the group
    `cause` of the pattern, the whole match where it has none; "" where nothing matches."""
    for pattern in patterns:
        compiled = re.compile(pattern)
        for line in lines:
            found = compiled.search(line)
            if found is not None:
                named = "cause" in compiled.groupindex
                text = " ".join((found.group("cause") if named else found.group(0)).split())
                return _cut(text, _LONGEST)
    return ""


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def _worth_reading(lines: Sequence[str], noise: Sequence[str]) -> list[str]:
    """The lines without those that match `noise` and, where there is noise to leave out at all,
    without tracebacks, whose last line, the error itself, stays."""
    if not noise:
        return list(lines)
    patterns = [re.compile(pattern) for pattern in noise]
    kept = []
    prefix = None
    for line in lines:
        begin = _TRACEBACK.match(line)
        if begin is not None:
            prefix = begin.group("prefix")
            continue
        if prefix is not None:
            # Within a traceback frames are indented, behind the prefix of the logger if it has one.
            rest = line[len(prefix) :] if line.startswith(prefix) else line
            if rest[:1].isspace() or not rest.strip():
                continue
            prefix = None
        if line.strip() and not any(pattern.search(line) for pattern in patterns):
            kept.append(line)
    return kept


def _read(log: Path, begins: int, most: int) -> list[str]:
    """Lines from `begins` on, safe to print, of the last `most` bytes. A log that is shorter was
    written again: all of it counts."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            start = begins if begins <= end else 0
            file.seek(max(start, end - most))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return printable(text).splitlines()
