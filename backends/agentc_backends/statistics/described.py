"""Estimates as they stand in metrics.json, comparison.json, claims.json and sweep.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentc_backends.statistics.pooled import Pooled
from agentc_backends.statistics.sample import FEW, rests_on_seen
from agentc_backends.statistics.scores import Estimate, Scores


def described(one: Estimate, confidence: float) -> dict[str, Any]:
    """The mean with its limits, how many tasks it is over, and the test that gave them."""
    low, high = one.interval(confidence)
    known: dict[str, Any] = {"mean": one.mean, "low": low, "high": high}
    known |= {"confidence": confidence, "n": one.n, "method": one.method}
    return {**known, "runs": one.runs} if isinstance(one, Pooled) else known


def described_difference(scores: Scores, one: Estimate, confidence: float) -> dict[str, Any]:
    """The same of a paired difference, with the p-value of none and how many tasks moved; tasks
    are counted by their mean over the runs."""
    differences = scores.over_runs()
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return {
        **described(one, confidence),
        "p_value": one.p_value(),
        "better": better,
        "worse": worse,
        "equal": len(differences) - better - worse,
        "few": better + worse <= FEW,
        "if_unseen": _if_unseen(one, confidence),
    }


def _if_unseen(one: Estimate, confidence: float) -> dict[str, Any] | None:
    """What would be known if tasks that were not seen could move as far as the declared range lets
    them, where that is notably less; beside the furthest that a task was seen to move."""
    tasks = one.over_tasks if isinstance(one, Pooled) else one
    if tasks is None or not rests_on_seen(tasks, confidence):
        return None
    other = tasks.anywhere()
    open_ = replace(one, over_tasks=other) if isinstance(one, Pooled) else other
    low, high = open_.interval(confidence)
    known = {"low": low, "high": high, "p_value": open_.p_value()}
    return {"furthest": max(map(abs, tasks.values)), **known}


def holm(chances: Sequence[float]) -> list[float]:
    """p-values that hold for all of the tests together (Holm 1979), in the same order."""
    order = sorted(range(len(chances)), key=lambda at: chances[at])
    corrected, largest = [0.0] * len(chances), 0.0
    for rank, at in enumerate(order):
        largest = max(largest, min(1.0, (len(chances) - rank) * chances[at]))
        corrected[at] = largest
    return corrected
