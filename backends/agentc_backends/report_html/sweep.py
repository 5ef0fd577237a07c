"""One table over a sweep: evaluations pooled over seeds, a row for each other cell.

Intervals come from a bootstrap that draws seeds and tasks, since neither the tasks of one training
nor the repeats of a task are independent; differences are paired by seed and task.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, TypeAlias

from agentc_backends.report_html.collect import Collection

Run: TypeAlias = Mapping[str, float]
"""Mean reward of each task in one evaluation."""

CONFIDENCE = 0.95
_RESAMPLES = 2000
_SEED = "agentc/sweep/1"


@dataclass
class _Row:
    """Evaluations of one stage at one cell, by the values of the seed axes."""

    stage: str
    cell: dict[str, Any]
    runs: dict[str, Run] = field(default_factory=dict)


def sweep_tables(collection: Collection, experiment: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A table for each set of tasks that evaluations were made on; none without a matrix."""
    matrix: Mapping[str, Sequence[Any]] = experiment.get("matrix") or {}
    if not matrix:
        return []
    seeds = tuple(axis for axis in matrix if axis == "seed" or axis.endswith("_seed"))
    others = tuple(axis for axis in matrix if axis not in seeds)
    cells: Mapping[str, Mapping[str, Any]] = experiment.get("cells") or {}
    groups: dict[str, dict[tuple[str, str], _Row]] = {}
    for node in collection.of_type("Metrics"):
        metrics = node.document("metrics.json")
        about = cells.get(node.name) or {"base": node.name, "cell": {}}
        cell = dict(about["cell"])
        apart = {axis: cell.pop(axis) for axis in seeds if axis in cell}
        place = (str(about["base"]), json.dumps(cell, sort_keys=True))
        rows = groups.setdefault(str(metrics["name"]), {})
        row = rows.setdefault(place, _Row(place[0], cell))
        tasks = metrics["tasks"].items()
        run = {task: float(scores["reward"]) for task, scores in tasks if scores.get("n", 1)}
        row.runs[json.dumps(apart, sort_keys=True)] = run
    baseline = _baseline(collection, cells)
    return [_table(on, rows, others, seeds, baseline) for on, rows in groups.items()]


def pooled(runs: Sequence[Run]) -> dict[str, float] | None:
    """Mean over seeds and tasks with its interval; None without a task that all runs have."""
    tasks = sorted(set.intersection(*(set(run) for run in runs))) if runs else []
    if not tasks:
        return None
    rows = [[run[task] for task in tasks] for run in runs]
    generator = random.Random(_SEED)
    means = []
    for _ in range(_RESAMPLES):
        columns = generator.choices(range(len(tasks)), k=len(tasks))
        drawn = generator.choices(rows, k=len(rows))
        means.append(sum(row[at] for row in drawn for at in columns))
    means.sort()
    size = len(rows) * len(tasks)
    tail = (1 - CONFIDENCE) / 2
    return {
        "mean": sum(map(sum, rows)) / size,
        "low": means[int(tail * _RESAMPLES)] / size,
        "high": means[int((1 - tail) * _RESAMPLES) - 1] / size,
    }


def _table(
    on: str,
    rows: Mapping[tuple[str, str], _Row],
    others: Sequence[str],
    seeds: Sequence[str],
    baseline: str | None,
) -> dict[str, Any]:
    shown = []
    for (stage, cell), row in rows.items():
        base = rows.get((baseline, cell)) or rows.get((baseline, "{}")) if baseline else None
        shown.append(
            {
                "stage": stage,
                "cell": [row.cell.get(axis, "all") for axis in others],
                "runs": len(row.runs),
                "reward": pooled(list(row.runs.values())),
                "difference": None if base is None or base is row else _difference(row, base),
                "each": [fmean(run.values()) for run in row.runs.values() if run],
            }
        )
    apart = [row["difference"] for row in shown if isinstance(row["difference"], dict)]
    reaches = [abs(each[end]) for each in apart for end in ("low", "high")]
    return {
        "on": on,
        "others": list(others),
        "seeds": list(seeds),
        "baseline": baseline,
        "rows": shown,
        "reach": max(reaches, default=1.0) or 1.0,
    }


def _difference(row: _Row, base: _Row) -> dict[str, float] | None:
    """Paired by seed; an evaluation that does not depend on the seed stands for each of them."""
    found = []
    for seed, run in row.runs.items():
        other = base.runs.get(seed) or base.runs.get("{}")
        if other is not None:
            found.append({task: run[task] - other[task] for task in run if task in other})
    if "{}" in row.runs and not found:
        own = row.runs["{}"]
        found = [
            {task: own[task] - run[task] for task in own if task in run}
            for run in base.runs.values()
        ]
    return pooled(found)


def _baseline(collection: Collection, cells: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The stage that the comparisons of the sweep take as theirs, if they agree."""
    names = set()
    for node in collection.of_type("Comparison"):
        name = str(node.document("comparison.json")["baseline"])
        names.add(str(cells.get(name, {"base": name})["base"]))
    return names.pop() if len(names) == 1 else None
