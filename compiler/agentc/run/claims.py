"""Verdicts on a spec's claims, as the store has them, for people: a table, and which gate shuts.

The verdicts job writes claims.json (`agentc_backends.results.verdicts`); the report draws the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentc.plan.work import Document, object_of
from agentc.program.artifact_files import VERDICTS_FILE
from agentc.runtime.health import verdict_words
from agentc.runtime.store.layout import StoreLayout
from agentc.text import wrapped

_GATE = "AGC720"
_COLOURS = {
    "reproduced": "\x1b[32m",
    "supported": "\x1b[32m",
    "not reproduced": "\x1b[31m",
    "contradicted": "\x1b[31m",
    "inconclusive": "\x1b[33m",
    "not judged": "\x1b[2m",
}
_FAINT, _PLAIN = "\x1b[2m", "\x1b[0m"
_WIDTH = 80


def find_verdicts(document: Document, layout: StoreLayout) -> Mapping[str, Any] | None:
    """The plan's claims.json; None when it has no verdicts stage, or that has not run."""
    for job in document["jobs"]:
        if job["produces"] == "Verdicts" and layout.is_published(name := object_of(job)):
            try:
                value = json.loads((layout.data(name) / VERDICTS_FILE).read_text("utf-8"))
            except (OSError, ValueError):
                return None
            return value if isinstance(value, dict) else None
    return None


def has_claims(document: Document) -> bool:
    """Whether the plan judges any."""
    return any(job["produces"] == "Verdicts" for job in document["jobs"])


def shut_gates(verdicts: Mapping[str, Any]) -> list[str]:
    """Names of the gated claims that are not reproduced or contradicted."""
    return [
        str(claim["name"])
        for claim in verdicts.get("claims") or []
        if claim.get("gate") and claim.get("verdict") in ("not reproduced", "contradicted")
    ]


def gate_message(names: Sequence[str]) -> str:
    """Why the exit code is 6."""
    return f"agentc: {_GATE}: a gate of the spec does not hold: {', '.join(names)}"


def render_verdicts(verdicts: Mapping[str, Any], *, colour: bool, width: int | None = None) -> str:
    """The table of claims, each with the reason for its verdict below it."""
    claims: Sequence[Mapping[str, Any]] = verdicts.get("claims") or []
    # A hypothesis of one's own has no paper.
    printed = any(claim["relation"] == "value" or claim.get("table") for claim in claims)
    sides = ["paper", "here"] if printed else ["claimed", "measured"]
    rows = [["claim", *sides, "verdict"]]
    rows += [[_name(claim), _paper(claim), _here(claim), _verdict(claim)] for claim in claims]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    scale = verdicts.get("scale")
    head = f"claims, with {_percent(verdicts.get('confidence', 0.95))} intervals"
    if scale is not None:
        head += f"; not judged at scale {scale}"
    lines = wrapped(head, width)
    longest = 2 + sum(widths) + 2 * len(widths) + max(len(row[3]) for row in rows)
    stacks = width is not None and longest > width
    for row, claim in zip(rows, [None, *claims], strict=True):
        verdict = row[3]
        if colour and claim is not None:
            tint = _COLOURS.get(verdict, _FAINT)
            verdict = f"{tint}{verdict}{_PLAIN}"
        if not stacks:
            cells = "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=False))
            lines.append(f"  {cells}  {verdict}")
        elif claim is not None:
            lines.append(f"  {row[0]}: {verdict}")
            for side, cell in zip(sides, row[1:], strict=False):
                lines += wrapped(f"{side} {cell}", width, "    ")
        if claim is not None:
            lines += _faint(f"{_subject(claim)}: {claim['because']}", width or _WIDTH, colour)
    return "\n".join(lines)


def _name(claim: Mapping[str, Any]) -> str:
    gate = " (gate)" if claim.get("gate") else ""
    return f"{claim['name']}{gate}"


def _verdict(claim: Mapping[str, Any]) -> str:
    return verdict_words(str(claim["verdict"]), claim.get("observed") or {})


def _subject(claim: Mapping[str, Any]) -> str:
    table = claim.get("table")
    return str(claim["what"]) + (f" ({table})" if table else "")


def _paper(claim: Mapping[str, Any]) -> str:
    if claim.get("reach") is not None:
        return f"{claim['relation']} {claim['value']:.4g}"
    show = _unit(claim)
    paper = claim.get("paper")
    if paper is not None:
        return f"{_interval(paper, show)} {_count(paper)}"
    if claim["relation"] == "value":
        return f"{show(claim['value'])} n={claim['n']}"
    return f"{claim['relation']} {show(claim['value'])}"


def _here(claim: Mapping[str, Any]) -> str:
    observed = claim.get("observed")
    if observed is None:
        return "-"
    if "bound" in observed:
        return _counted(observed)
    return f"{_interval(observed, _unit(claim))} {_count(observed)}"


def _counted(known: Mapping[str, Any]) -> str:
    """What a run of RL played until it got somewhere, or a ratio of two such numbers: perhaps by a
    bound alone, perhaps with an open end."""
    sign = {"above": ">=", "below": "<="}.get(known["bound"], "")
    high = "open" if known["high"] is None else f"{known['high']:.4g}"
    runs = "1 run" if known["n"] == 1 else f"{known['n']} runs"
    return f"{sign}{known['mean']:.4g} [{known['low']:.4g}, {high}] {runs}"


def _count(known: Mapping[str, Any]) -> str:
    runs = known.get("runs", 1)
    text = f"n={known['n']}" + (f" x {runs} runs" if runs > 1 else "")
    chance = known.get("p_value")
    return f"{text} p{show_chance(chance, '=')}" if isinstance(chance, float) else text


def show_chance(p: float, equals: str = "") -> str:
    """A p-value; none is zero, and far out its digits are those of rounding."""
    return f"{equals}{p:.3g}" if p >= 1e-6 else "<1e-06"


class _Unit:
    """Shows numbers as the paper does: parts of one, or points of a hundred."""

    def __init__(self, percent: bool) -> None:
        self._factor, self._digits = (100.0, 1) if percent else (1.0, 3)

    def __call__(self, number: float) -> str:
        return f"{self._factor * number:.{self._digits}f}"


def _unit(claim: Mapping[str, Any]) -> _Unit:
    return _Unit(bool(claim.get("percent")))


def _interval(value: Mapping[str, Any], show: _Unit) -> str:
    mean, low, high = (show(value[name]) for name in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def _faint(text: str, width: int, colour: bool) -> Iterable[str]:
    for line in wrapped(text, width, "      ", hanging=""):
        yield f"{_FAINT}{line}{_PLAIN}" if colour else line
