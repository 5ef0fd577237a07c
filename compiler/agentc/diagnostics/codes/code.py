"""Code: one kind of diagnostic, named and explained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """`title` is what went wrong in a few words; `explanation` says why that is a fault, and what
    to do about it.

    Each code has an example, a spec that gets it and the same spec mended, in the folder
    `diagnostics/examples/<code>`; where there can be none, `no_example` is a sentence
    that says why.
    """

    code: str
    title: str
    explanation: str
    no_example: str = ""
