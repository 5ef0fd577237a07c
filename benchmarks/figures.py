"""Figures and the table of them. Every bench returns a list of `Figure`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured quantity. `ratio` is `value` over that of the figure named by `against`."""

    bench: str
    name: str
    value: float
    unit: str
    ratio: float | None = None
    against: str = ""
    note: str = ""


def markdown(figures: Sequence[Figure]) -> str:
    """A markdown table with one row for each figure."""
    lines = ["| bench | figure | absolute | ratio | against | note |", "|---|---|---|---|---|---|"]
    for one in figures:
        ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
        value = f"{_rounded(one.value)} {one.unit}"
        cells = (one.bench, one.name, value, ratio, one.against, one.note)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _rounded(value: float) -> str:
    """Three digits, and whole numbers from a hundred on."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
