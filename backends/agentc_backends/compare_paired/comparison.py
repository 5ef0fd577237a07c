"""Compares evaluations on the same tasks: paired differences, intervals and p-values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentc_backends.evaluate_agent.metrics import mean_of
from agentc_backends.inference.described import described_difference, holm
from agentc_backends.inference.scores import (
    Metrics,
    bounds_of,
    bounds_of_difference,
    read_scores,
)


class ComparisonError(ValueError):
    """The evaluations cannot be compared."""


def compare(
    rows: Sequence[tuple[str, Metrics]], baseline: tuple[str, Metrics], confidence: float
) -> dict[str, Any]:
    """comparison.json of named evaluations, in the given order.

    `p_holm` of a difference holds for all rows together. `notes` say what else than the policies
    differs. Raises ComparisonError unless all were made on the same tasks of the same split.
    """
    for name, metrics in rows:
        _check_same_tasks(baseline, (name, metrics))
    made = [_row(name, metrics, baseline, confidence) for name, metrics in rows]
    for score in ("difference", "success_difference"):
        tested = [row[score] for row in made if row[score] is not None]
        for difference, p in zip(tested, holm([d["p_value"] for d in tested]), strict=True):
            difference["p_holm"] = p
    return {
        "baseline": baseline[0],
        "rows": made,
        "confidence": confidence,
        "notes": [note for row in rows for note in _protocols_apart(baseline, row)],
        "test": "score test with Student's quantiles, and exact sign flips where few tasks moved",
    }


def _row(
    name: str, metrics: Metrics, baseline: tuple[str, Metrics], confidence: float
) -> dict[str, Any]:
    itself = metrics is baseline[1]
    differences = {
        score: None if itself else _difference(metrics, baseline[1], score, confidence)
        for score in ("reward", "success")
    }
    return {
        "name": name,
        "n": metrics["n"],
        "n_tasks": metrics.get("n_tasks", len(metrics["tasks"])),
        "n_error": metrics["n_error"],
        "reward": mean_of(metrics, "reward", confidence),
        "success": mean_of(metrics, "success", confidence),
        "difference": differences["reward"],
        "success_difference": differences["success"],
    }


def _difference(
    metrics: Metrics, baseline: Metrics, score: str, confidence: float
) -> dict[str, Any]:
    """Over the tasks that both have a score for: one all of whose episodes ended in infrastructure
    errors has none, and `n` says how many are left."""
    scores = read_scores([(metrics, baseline)], score)
    if not scores.tasks:
        raise ComparisonError("no task has a score in both evaluations")
    estimate = scores.estimate(bounds_of_difference(bounds_of(baseline, score)))
    return described_difference(scores, estimate, confidence)


def _protocols_apart(first: tuple[str, Metrics], second: tuple[str, Metrics]) -> Iterator[str]:
    """What differs in how two evaluations were made, besides their policies."""
    (one_name, one), (other_name, other) = first, second
    ours, theirs = (_flat(metrics.get("protocol") or {}) for metrics in (one, other))
    apart = [
        f"{name} {_shown(ours[name])} and {_shown(theirs[name])}"
        for name in ours
        if name in theirs and ours[name] != theirs[name]
    ]
    if apart:
        yield (
            f"{one_name} and {other_name} were played under two protocols ({'; '.join(apart)}): "
            "their difference is that of protocol and policy together"
        )


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def _check_same_tasks(first: tuple[str, Metrics], second: tuple[str, Metrics]) -> None:
    (one_name, one), (other_name, other) = first, second
    for what in ("environment", "split"):
        if one[what] != other[what]:
            raise ComparisonError(
                f"{one_name} was evaluated on {what} {one[what]!r} and {other_name} on "
                f"{other[what]!r}; a paired comparison needs the same tasks"
            )
    only_one, only_other = (
        set(one["tasks"]) - set(other["tasks"]),
        set(other["tasks"]) - set(one["tasks"]),
    )
    if only_one or only_other:
        example = min(only_one or only_other)
        raise ComparisonError(
            f"{one_name} and {other_name} were evaluated on different tasks: {len(only_one)} only "
            f"in the first, {len(only_other)} only in the second (for example {example!r}); give "
            "both the same split, limit and environment settings"
        )
