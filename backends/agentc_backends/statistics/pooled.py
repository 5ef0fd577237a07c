"""The mean over several training runs on the same tasks, with the noise of both.

Runs and tasks are crossed: each run meets each task once, and both are samples. The mean squares of
the two-way table separate how much runs, tasks and the rest vary; docs/claims.md has the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from agentc_backends.statistics.sample import Sample
from agentc_backends.statistics.student import t_quantile, two_sided


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
