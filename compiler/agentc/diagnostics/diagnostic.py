"""Diagnostic: one thing that is wrong (or doubtful), as data, with the place in a source that it is
about. `render.py` makes text of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Source:
    """A text with the name that is shown to people (a path as the user typed it).

    A template is a source of its own at each place that uses it; `used_at` is that place.
    """

    name: str
    text: str
    used_at: Span | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A region of a source; lines and columns count from 1, the end is exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int


def uses_of(span: Span) -> tuple[Span, ...]:
    """The places that led to a span through templates, innermost first; () in a spec itself."""
    found: list[Span] = []
    at = span.source.used_at
    while at is not None:
        found.append(at)
        at = at.source.used_at
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Origin:
    """How a node came to be: its span, and the steps that brought it there (outermost last).

    A step reads like "round 2 of eto" or "template stages/dpo.yaml".
    """

    span: Span
    steps: tuple[str, ...] = ()


# Lines of a text as YAML counts them; every place in a diagnostic relies on it.

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def split_lines(text: str) -> list[str]:
    """The lines without their breaks; a text that ends in a break has an empty last line."""
    return _BREAK.split(text)


@dataclass(slots=True)
class SourceLines:
    """The lines of sources; each source is split once, however many diagnostics quote it."""

    _kept: dict[Source, list[str]] = field(default_factory=dict)

    def of(self, source: Source) -> list[str]:
        """The lines of a source."""
        if source not in self._kept:
            self._kept[source] = split_lines(source.text)
        return self._kept[source]


Severity: TypeAlias = Literal["error", "warning", "note"]
"""A `note` reports a choice that works and has a better form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """`code` is an entry of `agentc.reference.codes`. `message` says what is wrong in one sentence.

    `expected` says what would have been right, `notes` add facts, `fix` is the text to write or
    the command to run. `steps` say how the place came to be compiled ("round 2 of eto"), innermost
    first. `span` is None when the trouble has no place in a file.
    """

    code: str
    message: str
    span: Span | None = None
    severity: Severity = "error"
    expected: str | None = None
    notes: tuple[str, ...] = ()
    fix: str | None = None
    steps: tuple[str, ...] = ()
    rests_on: tuple[Span, ...] = ()
    """Settings that it takes for right: where one of them is an error itself, this one follows
    from that and is not shown."""
