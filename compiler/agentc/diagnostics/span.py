"""Source, Span and Origin: where a node came from. Everything that can be wrong carries one."""

from __future__ import annotations

from dataclasses import dataclass


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
