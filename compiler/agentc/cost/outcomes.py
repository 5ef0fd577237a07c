"""Expected against actual: what a run's record says was expected of its jobs, and what they took.

`runs/<name>/estimate.json` maps objects to what was expected before the job that makes them ran.
It stands beside the store's objects and never enters one: an estimate is no part of a result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentc.cost.amounts import tokens_of
from agentc.cost.estimate import Estimate
from agentc.cost.observe import read_subject
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder
from agentc.text import fitted, format_count, format_duration

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOutcome:
    """One stage: expected seconds (p10, p50, p90) of its finished jobs, and what they took. Tokens
    likewise, where both are known. `jobs` counts the finished ones."""

    stage: str
    jobs: int
    expected: tuple[float, float, float]
    actual: float
    tokens: float
    actual_tokens: float | None
    basis: str

    @property
    def within(self) -> bool:
        """Whether the time lay within the band."""
        return self.expected[0] <= self.actual <= self.expected[2]

    @property
    def ratio(self) -> float:
        """Actual over expected."""
        return self.actual / self.expected[1] if self.expected[1] else 1.0


def expected_entry(estimate: Estimate) -> dict[str, Any]:
    """An estimate as the record keeps it."""
    seconds = estimate.seconds
    return {
        "id": estimate.id,
        "seconds": [round(x, 3) for x in (seconds.low, seconds.median, seconds.high)],
        "tokens": round(estimate.tokens.median),
        "gpus": estimate.gpus,
        "basis": estimate.basis,
    }


def read_expected(folder: RunFolder) -> dict[str, Entry]:
    """The record's entries by object; nothing when there are none that can be read."""
    try:
        found = json.loads(folder.estimate.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: entry for name, entry in found.items() if _is_entry(entry)}


def outcomes(
    jobs: Iterable[Mapping[str, Any]], layout: StoreLayout, expected: Mapping[str, Entry]
) -> list[StageOutcome]:
    """Stages of a plan with jobs that finished after something was expected of them."""
    stages: dict[str, list[tuple[Entry, float, float | None]]] = {}
    seen: set[str] = set()
    for job in jobs:
        name = f"{job['kind']}/{job['key']}"
        entry = expected.get(name)
        made = read_subject(layout.object(name)) if entry is not None else None
        if entry is None or made is None or name in seen:
            continue
        seen.add(name)
        wall = made.measured.get("wall_s")
        if isinstance(wall, (int, float)):
            stages.setdefault(str(job["stage"]), []).append((entry, wall, tokens_of(made)))
    return [_outcome(stage, done) for stage, done in stages.items()]


def outcome_lines(found: Iterable[StageOutcome], width: int | None = None) -> list[str]:
    """A table for people, with the sums, in the `width` of a terminal."""
    found = list(found)
    if not found:
        return []
    rows = [("stage", "expected", "p10 to p90", "took", "", "based on")]
    for each in found:
        low, middle, high = each.expected
        rows.append(
            (
                each.stage,
                format_duration(middle),
                f"{format_duration(low)} to {format_duration(high)}",
                format_duration(each.actual),
                verdict(each),
                each.basis,
            )
        )
    total, took = sum(each.expected[1] for each in found), sum(each.actual for each in found)
    rows.append(("all together", format_duration(total), "", format_duration(took), "", ""))
    lines = fitted(rows, width, right=(1, 2, 3), drop=(5, 2))
    tokens = [(e.tokens, e.actual_tokens) for e in found if e.actual_tokens and e.tokens]
    if tokens:
        guessed, actual = sum(pair[0] for pair in tokens), sum(pair[1] or 0.0 for pair in tokens)
        lines.append(f"tokens: {format_count(guessed)} expected, {format_count(actual)} actual")
    return lines


def verdict(outcome: StageOutcome) -> str:
    """`within`, or how far off: `1.8 times slower` than estimated."""
    if outcome.within:
        return "within"
    ratio, word = outcome.ratio, "slower"
    if ratio < 1:
        ratio, word = 1 / ratio, "faster"
    return f"{ratio:.2g} times {word}" if ratio < 10 else f"{ratio:.0f} times {word}"


def _outcome(stage: str, done: list[tuple[Entry, float, float | None]]) -> StageOutcome:
    bands = [entry["seconds"] for entry, _, _ in done]
    low, middle, high = (float(sum(band[place] for band in bands)) for place in range(3))
    main = max(done, key=lambda each: float(each[0]["seconds"][1]))
    tokens = [(entry.get("tokens") or 0, met) for entry, _, met in done if met]
    return StageOutcome(
        stage=stage,
        jobs=len(done),
        expected=(low, middle, high),
        actual=sum(wall for _, wall, _ in done),
        tokens=float(sum(guessed for guessed, _ in tokens)),
        actual_tokens=float(sum(met for _, met in tokens)) if tokens else None,
        basis=str(main[0].get("basis") or ""),
    )


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    seconds = entry.get("seconds")
    return (
        isinstance(seconds, list)
        and len(seconds) == 3
        and all(isinstance(x, (int, float)) for x in seconds)
    )
