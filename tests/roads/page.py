"""The roads as the section `roads` of notes/roads.md. Neighbours: `follow.py`, which finds them,
and `reasons.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.roads.follow import Road
from tests.roads.reasons import reason_of

BEFORE: Mapping[str, tuple[int, int]] = {
    "beta": (21, 63),
    "tensor_parallel": (29, 53),
    "max_depth": (37, 53),
}
"""In hand and around it at commit eaa1b07, by this trace with the names of its imports adapted."""
ENDS: Mapping[str, str] = {
    "beta": "the loss of DPO",
    "tensor_parallel": "vLLM's command line",
    "max_depth": "the tasks of TextCraft",
}
PARTS = ("compiling", "wrapper", "program, server")


def section(roads: Sequence[Road]) -> list[str]:
    """The lines between the marks. Raises ValueError for a module that no reason is given for."""
    lines = [
        "| value | acts in | compiling | wrapper | program, server | in hand, all | around it "
        "| in hand, around it at eaa1b07 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for road in roads:
        counts = [len(_hand(part)) for part in _parts(road)]
        total, around = len(road.in_hand()), len(road.all()) - len(road.in_hand())
        before = ", ".join(map(str, BEFORE[road.name]))
        row = [f"`{road.name}`", ENDS[road.name], *counts, total, around, before]
        lines.append("| " + " | ".join(map(str, row)) + " |")
    lines += ["", "| in hand | of | what for |", "|---|---|---|"]
    for number, title in enumerate(PARTS):
        lines.append(f"| **{title}** | | |")
        hands = {road.name: set(_hand(_parts(road)[number])) for road in roads}
        for module in sorted(set().union(*hands.values())):
            names = ", ".join(f"`{name}`" for name, hand in hands.items() if module in hand)
            lines.append(f"| {module.removesuffix('.py')} | {names} | {reason_of(module)} |")
    return lines


def _parts(road: Road) -> tuple[Mapping[str, str], ...]:
    return road.compiling, road.wrapper, road.program


def _hand(part: Mapping[str, str]) -> list[str]:
    return sorted(module for module, how in part.items() if how == "hand")
