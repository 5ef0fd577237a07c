"""What an experiment found, as numbers and words for trackers: evaluations with their intervals,
differences, verdicts on claims.

Neighbour: `follow.py` calls this once for each object of these types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

FILES = {"Metrics": "metrics.json", "Comparison": "comparison.json", "Verdicts": "claims.json"}
"""The types of artifacts with results, and the file that holds them."""

_SCORES = ("reward", "success")
_INTERVAL = ("mean", "low", "high")
_COUNTS = ("n_tasks", "n_error")


def evaluation_numbers(series: str, metrics: Mapping[str, Any]) -> dict[str, float]:
    """Of metrics.json: `<series>/reward` is the mean, beside it the ends of its interval."""
    found = dict(_scores(series, metrics))
    for name in _COUNTS:
        if isinstance(metrics.get(name), int):
            found[f"{series}/{name}"] = float(metrics[name])
    return found


def comparison_numbers(comparison: Mapping[str, Any]) -> dict[str, float]:
    """Of comparison.json: each evaluation's difference from the baseline, with its interval."""
    found: dict[str, float] = {}
    for row in comparison.get("rows") or ():
        for score, key in (("reward", "difference"), ("success", "success_difference")):
            what = f"{row['name']}/{score} less {comparison.get('baseline')}"
            found.update(_interval(what, row.get(key)))
    return found


def verdict_numbers(verdicts: Mapping[str, Any]) -> dict[str, float]:
    """Of claims.json: what was observed for each claim, with its interval."""
    found: dict[str, float] = {}
    for claim in verdicts.get("claims") or ():
        observed = claim.get("difference") or claim.get("observed")
        found.update(_interval(f"claims/{claim['name']}", observed))
    return found


def verdict_words(verdicts: Mapping[str, Any]) -> dict[str, str]:
    """The verdict on each claim, by its name."""
    return {str(claim["name"]): str(claim["verdict"]) for claim in verdicts.get("claims") or ()}


def verdict_text(verdicts: Mapping[str, Any]) -> str:
    """The same as a table in Markdown, with the reasons."""
    lines: list[str] = ["| claim | what | verdict | because |", "|---|---|---|---|"]
    for claim in verdicts.get("claims") or ():
        cells = (claim["name"], claim.get("what"), claim["verdict"], claim.get("because"))
        lines.append(f"| {' | '.join(_cell(each) for each in cells)} |")
    return "\n".join(lines)


def _scores(series: str, metrics: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for score in _SCORES:
        yield from _interval(f"{series}/{score}", metrics.get(score)).items()


def _interval(name: str, value: Mapping[str, Any] | None) -> dict[str, float]:
    """`name` for the mean, `name_low` and `name_high`; nothing of what was not measured. No name is
    a folder of another: MLflow's files could not hold both."""
    if not isinstance(value, dict):
        return {}
    return {
        name if part == "mean" else f"{name}_{part}": float(value[part])
        for part in _INTERVAL
        if isinstance(value.get(part), (int, float))
    }


def _cell(value: Any) -> str:
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")
