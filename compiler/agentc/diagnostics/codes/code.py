"""Code: one kind of diagnostic, named and explained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """`title` is what went wrong in a few words; `explanation` says why that is a fault, and what
    to do about it.

    `example` is a spec, or a part of one, that gets this code; "" where none is short.
    """

    code: str
    title: str
    explanation: str
    example: str = ""
