"""join_claims: the claims of a sweep's cells become those of one module. Part of `join_cells`.

A claim stands once for each cell whose stages differ, with the cell in its name; one that goes
`over:` some of the swept params stands for all of their values, and is about the mean of the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentc.ir.claim import Claim, Run

Cell = Mapping[str, str]
"""Swept param -> label of its value."""


def join_claims(placed: Sequence[tuple[Cell, Claim]]) -> tuple[Claim, ...]:
    """The claims of all cells; their stages bear the names that they have in the joined module."""
    groups: dict[tuple[Claim, tuple[tuple[str, str], ...]], dict[Run, None]] = {}
    for cell, claim in placed:
        rest = tuple((axis, label) for axis, label in cell.items() if axis not in claim.over)
        groups.setdefault((_said(claim), rest), {})[claim.stage, claim.difference_from] = None
    found: dict[tuple[Claim, tuple[Run, ...]], tuple[tuple[str, str], ...]] = {}
    for (said, rest), runs in groups.items():
        found.setdefault((said, tuple(runs)), rest)
    named = [(_bound(said, runs), rest) for (said, runs), rest in found.items()]
    return tuple(_named(claim, rest, named) for claim, rest in named)


def _said(claim: Claim) -> Claim:
    """The claim without the stages that test it."""
    return replace(claim, stage="", difference_from=None)


def _bound(claim: Claim, runs: tuple[Run, ...]) -> Claim:
    stage, baseline = runs[0]
    if len(runs) == 1:
        return replace(claim, stage=stage, difference_from=baseline)
    common = None if baseline is None else _base(baseline)
    return replace(claim, stage=_base(stage), difference_from=common, runs=runs)


def _base(stage: str) -> str:
    return stage.partition("@")[0]


def _named(
    claim: Claim,
    rest: tuple[tuple[str, str], ...],
    all_named: Sequence[tuple[Claim, tuple[tuple[str, str], ...]]],
) -> Claim:
    """With the cell in its name, as far as it tells claims of one name apart."""
    others = [dict(cell) for other, cell in all_named if other.name == claim.name]
    if len(others) == 1:
        return claim
    telling = [(axis, label) for axis, label in rest if len({c.get(axis) for c in others}) > 1]
    return replace(claim, name=claim.name + "@" + ",".join(f"{a}={label}" for a, label in telling))
