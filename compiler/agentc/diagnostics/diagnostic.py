"""Diagnostic: one thing that is wrong (or doubtful), as data. `render.py` makes text of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.diagnostics.span import Span

Severity: TypeAlias = Literal["error", "warning"]


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
