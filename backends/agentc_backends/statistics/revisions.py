"""What the rows of a revision say of its tasks, in the form that evaluations have: how far the
actor went before it saw its mistake (Agent-R, arXiv 2501.11425, section 5, finding 3), and whether
it saw one. Comparisons and claims read them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

REVISION_LENGTH = "revision_length"
REVISED = "revised"
REVISION_SCORES = (REVISION_LENGTH, REVISED)

_SHORTEST = 1


def revision_metrics(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """For each task with rows of the part `revision`: the mean number of the first wrong action,
    null where none was flagged, and the share of rows where one was. Rows of a task share its
    tree, so that the task is what counts once. `length_range` goes to the longest bad part."""
    flagged: dict[str, list[int | None]] = defaultdict(list)
    longest = _SHORTEST
    for row in rows:
        if row.get("part", "revision") != "revision":
            continue
        flag = row.get("flagged")
        flagged[row["task_id"]].append(flag)
        longest = max(longest, row.get("bad_actions") or 0, flag or 0)
    return {
        "n": sum(map(len, flagged.values())),
        "length_range": [_SHORTEST, longest],
        "tasks": {task: _scores(flags) for task, flags in flagged.items()},
    }


def tasks_with(metrics: Mapping[str, Any], score: str) -> dict[str, Any]:
    """The metrics with the tasks alone that have the score: which ones do is a result of the
    search and its judge, so that no other is lost."""
    kept = {name: task for name, task in metrics["tasks"].items() if task[score] is not None}
    return {**metrics, "tasks": kept}


def _scores(flags: Iterable[int | None]) -> dict[str, Any]:
    found = list(flags)
    lengths = [flag for flag in found if flag is not None]
    return {
        REVISION_LENGTH: fmean(lengths) if lengths else None,
        REVISED: len(lengths) / len(found),
        "attempts": len(found),
    }
