"""The road of text to a terminal: nothing that comes from outside moves a cursor or hides a word.

Logs, errors of jobs and packages, answers of servers and words of models may hold any bytes.
`printable` cleans such a text where it is read. `guarded_output` puts a filter before standard
output and standard error, so that no caller can forget: what passes there is text, line ends, tabs
and the few colours that agentc itself writes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_ESCAPE = "\x1b"
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, movements
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS and the like: titles, the clipboard
    r"|\x1b[ -/]*[0-~]"
)
_COLOURS = tuple(f"[{code}m" for code in ("0", "1", "2", "1;31", "1;33", *range(30, 38)))
"""What agentc paints with, behind the escape character."""
_CONTROLS = {
    code: REPLACEMENT
    for code in (*range(32), *range(127, 160), *range(0xD800, 0xE000))
    if chr(code) not in "\n\t"
}


def printable(text: str) -> str:
    """The text without sequences for terminals, each other character that is not visible (controls,
    marks of direction, lone surrogates) replaced; line ends stay, tabs are spaces."""
    if text.isprintable():
        return text
    bare = _SEQUENCE.sub("", text).replace("\r\n", "\n").expandtabs(4)
    return "".join(char if char == "\n" or char.isprintable() else _replaced(char) for char in bare)


def _replaced(char: str) -> str:
    """Other spaces are spaces; a progress bar's return begins a line."""
    if char == "\r":
        return "\n"
    return " " if char.isspace() else REPLACEMENT


class GuardedStream:
    """A text stream that writes no control characters to the one behind it."""

    def __init__(self, stream: Any) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        self.unguarded.write(_without_controls(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


def unguarded(stream: Any) -> Any:
    """The stream behind a guard, for a view that moves the cursor itself and cleans its texts."""
    return stream.unguarded if isinstance(stream, GuardedStream) else stream


@contextmanager
def guarded_output() -> Iterator[None]:
    """Standard output and standard error are guarded within."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = guards = _guard(out), _guard(err)
    try:
        yield
    finally:
        # Whoever has replaced one meanwhile keeps it.
        sys.stdout = out if sys.stdout is guards[0] else sys.stdout
        sys.stderr = err if sys.stderr is guards[1] else sys.stderr


def _guard(stream: Any) -> Any:
    return stream if stream is None or isinstance(stream, GuardedStream) else GuardedStream(stream)


def _without_controls(text: str) -> str:
    if text.isprintable():
        return text
    first, *rest = text.split(_ESCAPE)
    parts = [first.translate(_CONTROLS)]
    for part in rest:
        parts.append(_ESCAPE if part.startswith(_COLOURS) else REPLACEMENT)
        parts.append(part.translate(_CONTROLS))
    return "".join(parts)
