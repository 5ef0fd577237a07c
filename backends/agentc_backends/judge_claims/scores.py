"""The scores that a claim is about: a row for each run, a column for each task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Claim: TypeAlias = Mapping[str, Any]
Metrics: TypeAlias = Mapping[str, Any]

OTHER_TASKS = "the evaluations were made on different tasks"
NO_SCORE = "no task has a score"


def read_scores(
    claim: Claim, metrics: Mapping[str, Metrics]
) -> tuple[list[list[float]], int, str | None]:
    """The table, how many tasks were lost to infrastructure errors, and what is wrong if it cannot
    be made. A score is the metric of a task, or its difference from the baseline's of the same
    run; a task that lacks one in any evaluation is lost to all."""
    runs = claim.get("runs") or [[claim["stage"], claim["difference_from"]]]
    used = [stage for run in runs for stage in run if stage is not None]
    measured = [metrics[stage]["tasks"] for stage in used]
    names = list(measured[0])
    if any(set(tasks) != set(names) for tasks in measured):
        return [], 0, OTHER_TASKS
    kept = [name for name in names if all(tasks[name]["attempts"] for tasks in measured)]
    lost = len(names) - len(kept)
    if not kept:
        return [], lost, NO_SCORE
    metric = claim["metric"]
    table = []
    for stage, baseline in runs:
        scores = [metrics[stage]["tasks"][name][metric] for name in kept]
        if baseline is not None:
            tasks = metrics[baseline]["tasks"]
            scores = [s - tasks[name][metric] for s, name in zip(scores, kept, strict=True)]
        table.append(scores)
    return table, lost, None
