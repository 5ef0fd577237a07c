"""Compares evaluations on the same tasks: paired differences, intervals and p-values."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from math import fsum
from statistics import fmean
from typing import Any, TypeAlias

from agentc_backends.evaluate_agent.intervals import IntervalRules, described, interval_of_mean

Metrics: TypeAlias = Mapping[str, Any]

_EXACT_UP_TO = 12
_FLIPS = 10_000
_SEED = "agentc/sign-flip/1"


class ComparisonError(ValueError):
    """The evaluations cannot be compared."""


def compare(
    rows: Sequence[tuple[str, Metrics]], baseline: tuple[str, Metrics], rules: IntervalRules
) -> dict[str, Any]:
    """comparison.json of named evaluations, in the given order.

    Raises ComparisonError unless all were made on the same tasks of the same split.
    """
    for name, metrics in rows:
        _check_same_tasks(baseline, (name, metrics))
    return {
        "baseline": baseline[0],
        "rows": [_row(name, metrics, baseline, rules) for name, metrics in rows],
        "confidence": rules.confidence,
        "method": rules.method,
        "test": "two-sided sign-flip permutation of paired differences",
    }


def sign_flip_p_value(differences: Sequence[float]) -> float:
    """Two-sided p-value of the mean difference under random signs (Fisher's randomisation test for
    pairs): exact over all signs with up to 12 non-zero differences, else from 10,000 draws with a
    fixed seed, counting the observed one."""
    moved = [d for d in differences if d != 0]
    observed = abs(fsum(moved)) - 1e-12
    if len(moved) <= _EXACT_UP_TO:
        sums = [
            abs(fsum(s * d for s, d in zip(signs, moved, strict=True)))
            for signs in product((1, -1), repeat=len(moved))
        ]
        return sum(total >= observed for total in sums) / len(sums)
    generator = random.Random(_SEED)
    reached = sum(
        abs(fsum(d if generator.random() < 0.5 else -d for d in moved)) >= observed
        for _ in range(_FLIPS)
    )
    return (reached + 1) / (_FLIPS + 1)


def _row(
    name: str, metrics: Metrics, baseline: tuple[str, Metrics], rules: IntervalRules
) -> dict[str, Any]:
    itself = metrics is baseline[1]
    return {
        "name": name,
        "n": metrics["n"],
        "n_error": metrics["n_error"],
        "reward": described(interval_of_mean(_scores(metrics, "reward"), rules), rules),
        "success": described(interval_of_mean(_scores(metrics, "success"), rules), rules),
        "difference": None if itself else _difference(metrics, baseline[1], "reward", rules),
        "success_difference": (
            None if itself else _difference(metrics, baseline[1], "success", rules)
        ),
    }


def _difference(
    metrics: Metrics, baseline: Metrics, score: str, rules: IntervalRules
) -> dict[str, Any]:
    """Over the tasks that both have a score for: one all of whose episodes ended in infrastructure
    errors has none, and `n` says how many are left."""
    differences = [
        task[score] - baseline["tasks"][task_id][score]
        for task_id, task in metrics["tasks"].items()
        if task["attempts"] and baseline["tasks"][task_id]["attempts"]
    ]
    if not differences:
        raise ComparisonError("no task has a score in both evaluations")
    interval = interval_of_mean(differences, rules)
    return {
        "mean": fmean(differences),
        "low": interval.low,
        "high": interval.high,
        "n": len(differences),
        "p_value": sign_flip_p_value(differences),
    }


def _scores(metrics: Metrics, score: str) -> list[float]:
    return [task[score] for task in metrics["tasks"].values() if task["attempts"]]


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
