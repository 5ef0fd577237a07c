"""Estimates: a mean over tasks with its interval, ours or one that a paper printed.

The formulas and where they come from stand in docs/claims.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Protocol

from agentc_backends.judge_claims.student import t_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean of `n` scores that lie within `bounds`.

    `deviation` is the standard deviation of the scores; None where the mean is a share (each score
    is one of the two bounds), or where the scores do not vary: then the mean alone says how much
    they can vary at most, which is as a share would.
    """

    mean: float
    n: int
    bounds: tuple[float, float]
    deviation: float | None = None

    @property
    def method(self) -> str:
        """The name of the interval's formula."""
        return "wilson" if self.deviation is None else "student"

    def interval(self, confidence: float) -> tuple[float, float]:
        """Two-sided, within the bounds."""
        lowest, highest = self.bounds
        if self.deviation is None:
            width = highest - lowest
            low, high = wilson((self.mean - lowest) / width, self.n, confidence)
            return lowest + width * low, lowest + width * high
        reach = t_quantile(0.5 + confidence / 2, self.n - 1)
        reach *= self.deviation / math.sqrt(self.n)
        return max(lowest, self.mean - reach), min(highest, self.mean + reach)

    def standard_error(self) -> float:
        """Of the mean; for a share, by the interval that holds at 0 and 1 as well."""
        if self.deviation is not None:
            return self.deviation / math.sqrt(self.n)
        low, high = self.interval(0.95)
        return (high - low) / 2 / NormalDist().inv_cdf(0.975)

    def at(self, mean: float, n: int, runs: int) -> Estimate:
        """What somebody else's mean over `n` tasks would be known to, if their scores varied as
        these do. How `runs` vary cannot be told from one of ours, so it makes no difference."""
        deviation = self.deviation if n > 1 else None
        return Estimate(mean=mean, n=n, bounds=self.bounds, deviation=deviation)


def estimate(scores: Sequence[float], bounds: tuple[float, float]) -> Estimate:
    """The mean of scores of tasks. Raises ValueError without any."""
    if not scores:
        raise ValueError("no task has a score")
    share = all(score in bounds for score in scores)
    varies = len(scores) > 1 and not share and stdev(scores) > 0
    return Estimate(
        mean=min(max(fmean(scores), bounds[0]), bounds[1]),
        n=len(scores),
        bounds=bounds,
        deviation=stdev(scores) if varies else None,
    )


def wilson(share: float, n: int, confidence: float) -> tuple[float, float]:
    """The score interval of a share of `n` (Wilson 1927)."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # At 0 and 1 rounding would leave the share just outside of its own interval.
    return min(share, max(0.0, centre - reach)), max(share, min(1.0, centre + reach))


class Known(Protocol):
    """A mean that is known to some interval."""

    @property
    def mean(self) -> float: ...

    def interval(self, confidence: float) -> tuple[float, float]: ...


def interval_of_difference(one: Known, other: Known, confidence: float) -> tuple[float, float]:
    """Of one mean minus an independent other one, from the limits of both (Newcombe 1998, method
    10, for shares; Zou and Donner 2008 for any parameters)."""
    difference = one.mean - other.mean
    one_low, one_high = one.interval(confidence)
    other_low, other_high = other.interval(confidence)
    below = math.hypot(one.mean - one_low, other_high - other.mean)
    above = math.hypot(one_high - one.mean, other.mean - other_low)
    return difference - below, difference + above
