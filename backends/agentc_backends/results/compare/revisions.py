"""Compares revisions by what their actors saw of their mistakes: paired by task, as evaluations are
(`comparison.py`). Which tasks have revisions is a result of each search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentc_backends.agents.evaluate.metrics import mean_of
from agentc_backends.agents.evaluate.protocols import told_apart
from agentc_backends.results.compare.comparison import TEST, adjust, difference_of
from agentc_backends.statistics.revisions import (
    REVISED,
    REVISION_LENGTH,
    REVISION_SCORES,
    tasks_with,
)
from agentc_backends.statistics.scores import Metrics


def compare_revisions(
    rows: Sequence[tuple[str, Metrics]], baseline: tuple[str, Metrics], confidence: float
) -> dict[str, Any]:
    """comparison.json of named revisions, in the given order. `scores` names what stands in place
    of reward and success; `difference` is of the first."""
    longest = max(metrics["length_range"][1] for _, metrics in (*rows, baseline))
    alike = {"length_range": [baseline[1]["length_range"][0], longest]}
    held = {**baseline[1], **alike}
    made = [
        _row(name, {**metrics, **alike}, None if metrics is baseline[1] else held, confidence)
        for name, metrics in rows
    ]
    adjust(made, ("difference", f"{REVISED}_difference"))
    return {
        "baseline": baseline[0],
        "scores": list(REVISION_SCORES),
        "rows": made,
        "confidence": confidence,
        "notes": [
            *(
                f"{baseline[0]} and {row['name']} have no task in common with revisions of both, "
                "so that nothing is said of their difference"
                for row in made
                if row["name"] != baseline[0] and row[f"{REVISED}_difference"] is None
            ),
            *filter(None, (told_apart(baseline, row) for row in rows)),
        ],
        "test": TEST,
    }


def _row(
    name: str, metrics: Metrics, baseline: Mapping[str, Any] | None, confidence: float
) -> dict[str, Any]:
    """Means over the tasks that have revisions; differences over those that both have some of."""
    scores = {score: tasks_with(metrics, score) for score in REVISION_SCORES}
    differences = {
        score: None
        if baseline is None
        else difference_of(scores[score], tasks_with(baseline, score), score, confidence)
        for score in REVISION_SCORES
    }
    return {
        "name": name,
        "n": metrics["n"],
        "n_tasks": len(metrics["tasks"]),
        "n_error": 0,
        **{score: mean_of(scores[score], score, confidence) for score in REVISION_SCORES},
        "difference": differences[REVISION_LENGTH],
        f"{REVISED}_difference": differences[REVISED],
    }
