"""What text passes on its way out: secrets are redacted, control characters replaced.

`Redactor` knows a secret as it is and as programs write it: escaped for JSON or a URL, in
hexadecimal, and in base64 at any offset (as in a Basic header). `printable` and `guarded_output`
keep text of logs, packages and models from moving a terminal's cursor or hiding a word.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

REPLACEMENT = b"[redacted]"
_SHORTEST = 4
"""Shorter values are left alone: replacing `1` everywhere would destroy the log."""
_SHORTEST_DISGUISED = 8
"""Shorter values are looked for as they are only: what they give in base64 may be anything."""
_LINE = 16
"""A line of a longer value (of a private key) counts alone from this length on."""
_CHUNK = 1 << 20


class Redactor:
    """Replaces each secret value. Without secrets it changes nothing."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[bytes] = set()
        for secret in secrets:
            forms.update(form for form in _forms(secret) if len(form) >= _SHORTEST)
        # Longest first, so that a secret that contains another one goes as a whole.
        self.secrets: list[bytes] = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile(b"|".join(map(re.escape, self.secrets)))
        self._first = {form[0] for form in self.secrets}

    @property
    def longest(self) -> int:
        """Length in bytes of the longest form."""
        return len(self.secrets[0]) if self.secrets else 0

    def clean(self, text: bytes) -> bytes:
        """The text without the values."""
        return self._pattern.sub(REPLACEMENT, text) if self.secrets else text

    def clean_text(self, text: str) -> str:
        """The same for str."""
        if not self.secrets:
            return text
        return self.clean(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def split(self, text: bytes) -> tuple[bytes, bytes]:
        """The part of a growing text that can be shown, cleaned, and the rest: what may be the
        beginning of a secret, to be held until more arrives."""
        if not self.secrets:
            return text, b""
        whole = [match.span() for match in self._pattern.finditer(text)]
        for place in range(max(0, len(text) - self.longest + 1), len(text)):
            if text[place] not in self._first:
                continue
            if any(start < place < end for start, end in whole):
                continue  # in the middle of one that goes as a whole
            tail = text[place:]
            if any(len(form) > len(tail) and form.startswith(tail) for form in self.secrets):
                return self.clean(text[:place]), tail
        return self.clean(text), b""

    def clean_files(self, folder: Path) -> None:
        """Clean every file under a folder of logs, in place."""
        for path in _files(folder) if self.secrets else ():
            if self._holds(path):
                path.write_bytes(self.clean(path.read_bytes()))

    def holds(self, text: str) -> bool:
        """Whether a text holds a value."""
        found = self._pattern.search(text.encode("utf-8", "surrogatepass"))
        return bool(self.secrets) and found is not None

    def purge(self, folder: Path) -> str | None:
        """Take what holds a value out of a folder of staged work: lines of journals (`.jsonl`),
        whose other rows are worth keeping, and other files whole. Relative name of the first,
        cleaned, or None."""
        first: str | None = None
        for path in _files(folder) if self.secrets else ():
            name = path.relative_to(folder).as_posix()
            clean = self.clean_text(name)
            if clean == name and not self._holds(path):
                continue
            first = first or clean
            kept = b""
            if clean == name and path.suffix == ".jsonl":
                kept = self._without_lines(path.read_bytes())
            path.unlink()
            if kept:
                path.write_bytes(kept)
        return first

    def _without_lines(self, text: bytes) -> bytes:
        """The lines that hold no part of a value: one of several lines, written as it is, goes
        with its short lines, too."""
        spans = deque(match.span() for match in self._pattern.finditer(text))
        kept, start = [], 0
        for line in text.splitlines(keepends=True):
            end = start + len(line)
            while spans and spans[0][1] <= start:
                spans.popleft()
            if not spans or spans[0][0] >= end:
                kept.append(line)
            start = end
        return b"".join(kept)

    def find(self, folder: Path) -> str | None:
        """Relative name of the first file under a folder that holds a value, in its content or
        in its name, or None. The name is cleaned."""
        for path in _files(folder) if self.secrets else ():
            name = path.relative_to(folder).as_posix()
            if self.clean_text(name) != name or self._holds(path):
                return self.clean_text(name)
        return None

    def _holds(self, path: Path) -> bool:
        with path.open("rb") as file:
            held = b""
            while True:
                chunk = file.read(_CHUNK)
                if not chunk:
                    return False
                held += chunk
                if self._pattern.search(held):
                    return True
                held = held[len(held) - self.longest + 1 :] if self.longest > 1 else b""


def _forms(secret: str) -> Iterator[bytes]:
    raw = secret.encode("utf-8", "surrogateescape")
    yield raw
    yield raw.strip()
    lines = raw.splitlines()
    if len(lines) > 1:
        yield from (end.join(lines) for end in (b"\n", b"\r\n"))
    for line in lines:
        if len(line.strip()) >= _LINE:
            yield line.strip()
    if len(raw) < _SHORTEST_DISGUISED:
        return
    text = raw.decode("utf-8", "replace")
    for escaped in (
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        quote(raw, safe=""),
        quote(raw),
        quote_plus(raw),
        raw.hex(),
        raw.hex().upper(),
    ):
        yield escaped.encode("utf-8")
    for offset in range(3):
        # The digits that depend on nothing but the value, whatever stands before and after it.
        encoded = base64.b64encode(b"\0" * offset + raw)
        start = -(-offset * 8 // 6)
        core = encoded[start : (offset + len(raw)) * 8 // 6]
        yield core
        yield core.replace(b"+", b"-").replace(b"/", b"_")


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]


REPLACEMENT_CHARACTER = "\N{REPLACEMENT CHARACTER}"
_ESCAPE = "\x1b"
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, movements
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS and the like: titles, the clipboard
    r"|\x1b[ -/]*[0-~]"
)
_COLOURS = tuple(f"[{code}m" for code in ("0", "1", "2", "1;31", "1;33", "1;36", *range(30, 38)))
"""What agentc paints with, behind the escape character."""
_CONTROLS = {
    code: REPLACEMENT_CHARACTER
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
    return " " if char.isspace() else REPLACEMENT_CHARACTER


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
        parts.append(_ESCAPE if part.startswith(_COLOURS) else REPLACEMENT_CHARACTER)
        parts.append(part.translate(_CONTROLS))
    return "".join(parts)
