"""Scores of tasks out of metrics.json: a row for each run, a column for each task that all have.

A task all of whose episodes ended in infrastructure errors has no score; it is lost to the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeAlias

from agentc_backends.statistics.pooled import Pooled, pool
from agentc_backends.statistics.sample import Sample, sample

Metrics: TypeAlias = Mapping[str, Any]
Range: TypeAlias = tuple[float, float]
Estimate: TypeAlias = Sample | Pooled
Run: TypeAlias = tuple[Metrics, Metrics | None]
"""An evaluation, and the one that it is held against task by task."""


@dataclass(frozen=True, slots=True)
class Scores:
    """`table` holds scores, or differences (`paired`); `lost` counts tasks that some run lacks;
    `seen` is the range of the scores, or reaches as far to both sides as the largest difference."""

    table: tuple[tuple[float, ...], ...]
    paired: bool
    lost: int
    seen: Range

    @property
    def tasks(self) -> int:
        return len(self.table[0]) if self.table else 0

    def over_runs(self) -> list[float]:
        """The mean over the runs of each task."""
        means = [fmean(column) for column in zip(*self.table, strict=True)]
        return [_without_rounding(mean, self.seen[1]) for mean in means] if self.paired else means

    def estimate(self, bounds: Range) -> Estimate:
        """The mean within `bounds`, of one run or pooled over several. Runs that agree in every
        score say as much as one. Raises ValueError without a task."""
        mean = sample(self.over_runs(), bounds, paired=self.paired, seen=self.seen)
        if len(self.table) > 1 and self.tasks > 1:
            pooled = pool(self.table, mean)
            if pooled.standard_error() > 0:
                return pooled
        return mean


def read_scores(runs: Sequence[Run], metric: str, baselines: str | None = None) -> Scores:
    """The scores of the tasks that every evaluation has one of; of baselines another metric may be
    taken."""
    theirs = baselines or metric
    used = [
        (metrics["tasks"], which)
        for run in runs
        for metrics, which in zip(run, (metric, theirs), strict=True)
        if metrics is not None
    ]
    names = list(dict.fromkeys(name for tasks, _ in used for name in tasks))
    kept = [name for name in names if all(_has(tasks, name, which) for tasks, which in used)]
    table = []
    for metrics, baseline in runs:
        row = [float(metrics["tasks"][name][metric]) for name in kept]
        if baseline is not None:
            others = (float(baseline["tasks"][name][theirs]) for name in kept)
            row = [
                _without_rounding(score - other, max(abs(score), abs(other)))
                for score, other in zip(row, others, strict=True)
            ]
        table.append(tuple(row))
    paired = any(baseline is not None for _, baseline in runs)
    found = [abs(value) if paired else value for row in table for value in row] or [0.0]
    seen = (-max(found), max(found)) if paired else (min(found), max(found))
    return Scores(tuple(table), paired, len(names) - len(kept), seen)


def _without_rounding(difference: float, size: float) -> float:
    """None at all, where it is less than the arithmetic on numbers of `size` is exact to: a task
    that stayed equal must not count as one that moved."""
    return 0.0 if abs(difference) <= 1e-12 * size else difference


def bounds_of(metrics: Metrics, metric: str) -> Range:
    """Of one task's score: a reward, and the best of some, lies in the range that the environment
    declares, or, where that is not told, between 0 and 1 or as far as it was seen; the length of a
    revision within those that were seen; all others are shares, or lie between 0 and 1 too."""
    if metric == "revision_length":
        return float(metrics["length_range"][0]), float(metrics["length_range"][1])
    if metric != "reward" and not metric.startswith("best_of("):
        return 0.0, 1.0
    declared = metrics.get("reward_range")
    if declared is not None:
        return float(declared[0]), float(declared[1])
    found = [float(t[metric]) for t in metrics["tasks"].values() if t.get(metric) is not None]
    return min([0.0, *found]), max([1.0, *found])


def bounds_of_difference(bounds: Range) -> Range:
    """Of the difference between two scores that lie within `bounds`."""
    width = bounds[1] - bounds[0]
    return -width, width


def _has(tasks: Mapping[str, Mapping[str, Any]], name: str, metric: str) -> bool:
    task = tasks.get(name) or {}
    return bool(task.get("attempts", 1)) and task.get(metric) is not None
