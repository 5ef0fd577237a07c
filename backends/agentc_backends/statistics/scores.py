"""Scores of tasks out of metrics.json: a row for each run, a column for each task that all have;
the mean over both, with the noise of both; and how estimates, differences and win rates stand in
metrics.json, comparison.json, claims.json and sweep.json.

A task all of whose episodes ended in infrastructure errors has no score; it is lost to the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, TypeAlias

from agentc_backends.statistics.intervals import t_quantile, two_sided
from agentc_backends.statistics.sample import FEW, Sample, depends_on_seen_range, sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """A mean over `runs` runs on `n` tasks, within `bounds`.

    `between_runs`, `between_tasks` and `rest` are components of variance; `freedom` are the
    degrees of freedom of their sum (Satterthwaite 1946). `over_tasks` are the tasks' means over
    the runs: what is known of the mean is no more than these say by themselves. It is None where
    the tasks are somebody else's.
    """

    mean: float
    n: int
    runs: int
    bounds: tuple[float, float]
    between_runs: float
    between_tasks: float
    rest: float
    freedom: int
    over_tasks: Sample | None
    method: str = "two-way"

    def interval(self, confidence: float) -> tuple[float, float]:
        """Two-sided, within the bounds: every mean that the two tests do not both reject."""
        reach = t_quantile(0.5 + confidence / 2, self.freedom) * self.standard_error()
        low, high = self.mean - reach, self.mean + reach
        if self.over_tasks is not None:
            if self._two_way(0.0) >= 1 - confidence:
                # Rounding must not leave out what the p-value does not.
                low, high = min(low, 0.0), max(high, 0.0)
            inner = self.over_tasks.interval(confidence)
            low, high = min(low, inner[0]), max(high, inner[1])
        return max(self.bounds[0], low), min(self.bounds[1], high)

    def p_value(self, mean: float = 0.0) -> float:
        """Two-sided, of the hypothesis that the mean is `mean`: the larger one of both tests."""
        chance = self._two_way(mean)
        return chance if self.over_tasks is None else max(chance, self.over_tasks.p_value(mean))

    def _two_way(self, mean: float) -> float:
        return two_sided((self.mean - mean) / self.standard_error(), self.freedom)

    def standard_error(self) -> float:
        """Of the mean, over other runs and other tasks."""
        cells = self.runs * self.n
        variance = self.between_runs / self.runs + self.between_tasks / self.n + self.rest / cells
        return math.sqrt(variance)

    def at(self, mean: float, n: int, runs: int) -> Pooled:
        """What somebody else's mean of so many runs and tasks would be known to, if theirs varied
        as these do."""
        return Pooled(
            mean=mean,
            n=n,
            runs=runs,
            bounds=self.bounds,
            between_runs=self.between_runs,
            between_tasks=self.between_tasks,
            rest=self.rest,
            freedom=self.freedom,
            over_tasks=None,
        )


def pool(table: Sequence[Sequence[float]], over_tasks: Sample) -> Pooled:
    """The estimate of a table with a row for each run and a column for each task, whose columns'
    means are `over_tasks`.

    Raises ValueError with fewer than two of either: one run says nothing of how runs vary.
    """
    runs, tasks = len(table), len(table[0]) if table else 0
    if runs < 2 or tasks < 2:
        raise ValueError(f"{runs} runs on {tasks} tasks cannot be pooled")
    by_run = [fmean(row) for row in table]
    by_task = [fmean(column) for column in zip(*table, strict=True)]
    mean = fmean(by_run)
    square_runs = tasks * math.fsum((m - mean) ** 2 for m in by_run) / (runs - 1)
    square_tasks = runs * math.fsum((m - mean) ** 2 for m in by_task) / (tasks - 1)
    left = math.fsum(
        (score - m - t + mean) ** 2
        for row, m in zip(table, by_run, strict=True)
        for score, t in zip(row, by_task, strict=True)
    )
    square_rest = left / ((runs - 1) * (tasks - 1))
    return Pooled(
        mean=over_tasks.mean,
        n=tasks,
        runs=runs,
        bounds=over_tasks.bounds,
        between_runs=max(0.0, (square_runs - square_rest) / tasks),
        between_tasks=max(0.0, (square_tasks - square_rest) / runs),
        rest=square_rest,
        freedom=_freedom(square_runs, square_tasks, square_rest, runs, tasks),
        over_tasks=over_tasks,
    )


def _freedom(of_runs: float, of_tasks: float, of_rest: float, runs: int, tasks: int) -> int:
    """Of the sum of mean squares that the variance of the mean is; whole, and at least one."""
    terms: list[tuple[float, int]] = []
    if of_runs > of_rest:
        terms.append((of_runs, runs - 1))
    if of_tasks > of_rest:
        terms.append((of_tasks, tasks - 1))
    if len(terms) != 1:
        sign = -1.0 if terms else 1.0
        terms.append((sign * of_rest, (runs - 1) * (tasks - 1)))
    total = math.fsum(square for square, _ in terms)
    spread = math.fsum(square**2 / freedom for square, freedom in terms)
    return max(1, int(total**2 / spread)) if spread > 0 else runs - 1


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
            others = [float(baseline["tasks"][name][theirs]) for name in kept]
            row = _differences(row, others)
        table.append(tuple(row))
    paired = any(baseline is not None for _, baseline in runs)
    values = [abs(value) if paired else value for row in table for value in row] or [0.0]
    seen = (-max(values), max(values)) if paired else (min(values), max(values))
    return Scores(tuple(table), paired, len(names) - len(kept), seen)


def _differences(scores: Sequence[float], baselines: Sequence[float]) -> list[float]:
    return [
        _without_rounding(score - other, max(abs(score), abs(other)))
        for score, other in zip(scores, baselines, strict=True)
    ]


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


def describe(one: Estimate, confidence: float) -> dict[str, Any]:
    """The mean with its limits, how many tasks it is over, and the test that gave them."""
    low, high = one.interval(confidence)
    known: dict[str, Any] = {"mean": one.mean, "low": low, "high": high}
    known |= {"confidence": confidence, "n": one.n, "method": one.method}
    return {**known, "runs": one.runs} if isinstance(one, Pooled) else known


def describe_difference(scores: Scores, one: Estimate, confidence: float) -> dict[str, Any]:
    """The same of a paired difference, with the p-value of none and how many tasks moved; tasks
    are counted by their mean over the runs."""
    differences = scores.over_runs()
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return {
        **describe(one, confidence),
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
    if tasks is None or not depends_on_seen_range(tasks, confidence):
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


WIN_RATE = "win_rate"
WIN_BOUNDS = (0.0, 1.0)


def read_wins(runs: Sequence[Run]) -> Scores:
    """1, 1/2 or 0 for each task that both evaluations of every run have a reward of."""
    differences = read_scores(runs, "reward")
    table = tuple(tuple(_won(value) for value in row) for row in differences.table)
    found = [value for row in table for value in row] or [0.0]
    return Scores(table, False, differences.lost, (min(found), max(found)))


def describe_wins(scores: Scores, one: Estimate, confidence: float) -> dict[str, Any]:
    """The rate with its limits, and the counts behind it; of several runs, over all of them."""
    outcomes = [value for row in scores.table for value in row]
    counts = {"wins": outcomes.count(1.0), "ties": outcomes.count(0.5)}
    return {**describe(one, confidence), **counts, "losses": outcomes.count(0.0)}


def _won(difference: float) -> float:
    return 0.5 if difference == 0 else float(difference > 0)
