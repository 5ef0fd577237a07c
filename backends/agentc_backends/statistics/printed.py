"""A mean of which only the number, n and the spread are known, as a paper prints it; and how far
two independent means are apart.

The formulas and where they come from stand in docs/claims.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

from agentc_backends.statistics.student import t_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
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
        quantile = t_quantile(0.5 + confidence / 2, max(1, self.n - 1))
        if self.deviation is None:
            width = highest - lowest
            low, high = wilson((self.mean - lowest) / width, self.n, quantile)
            return lowest + width * low, lowest + width * high
        reach = quantile * self.deviation / math.sqrt(self.n)
        return max(lowest, self.mean - reach), min(highest, self.mean + reach)

    def standard_error(self) -> float:
        """Of the mean; for a share, by the interval that holds at 0 and 1 as well."""
        if self.deviation is not None:
            return self.deviation / math.sqrt(self.n)
        low, high = self.interval(0.95)
        return (high - low) / 2 / NormalDist().inv_cdf(0.975)


def wilson(share: float, n: int, quantile: float) -> tuple[float, float]:
    """The score interval of a share of `n` (Wilson 1927): those that are less than `quantile`
    standard errors away."""
    square = quantile**2
    centre = (share + square / (2 * n)) / (1 + square / n)
    spread = math.sqrt(share * (1 - share) / n + square / (4 * n * n))
    reach = quantile / (1 + square / n) * spread
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
