"""What a stage measured, as comparisons and claims read it: the metrics of an evaluation, what the
rows of a revision say of its tasks, with the rules of its judge, or the curve of a run of RL."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from agentc.program.artifact_files import CURVE_FILE, METRICS_FILE, ROWS_FILE
from agentc.program.job import read_rows

JUDGED_BY = "judged_by.json"
"""Beside the rows of a revision that asked a judge: its `protocol`, as an evaluation has one."""


def read_metrics(folder: Path) -> dict[str, Any]:
    """Of the artifact in a folder; the compiler lets nobody mix evaluations, revisions and runs."""
    if (folder / CURVE_FILE).exists():
        return {"curve": read_rows(folder / CURVE_FILE)}
    if not (folder / ROWS_FILE).exists():
        return _json(folder / METRICS_FILE)
    rules = folder / JUDGED_BY
    protocol = {"protocol": _json(rules)} if rules.exists() else {}
    return {**revision_metrics(read_rows(folder / ROWS_FILE)), **protocol}


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


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


def tasks_with_score(metrics: Mapping[str, Any], score: str) -> dict[str, Any]:
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
