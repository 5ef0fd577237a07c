"""Source, Span and Origin: where a node came from. Everything that can be wrong carries one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A text with the name that is shown to people (a path as the user typed it)."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """A region of a source; lines and columns count from 1, the end is exclusive."""

    source: Source
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Origin:
    """How a node came to be: its span, and the steps that brought it there (outermost last).

    A step reads like "round 2 of eto" or "template stages/dpo.yaml".
    """

    span: Span
    steps: tuple[str, ...] = ()
