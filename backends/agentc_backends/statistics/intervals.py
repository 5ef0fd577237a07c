"""Student's t distribution for whole degrees of freedom, and means of which only the number, n and
the spread are known, as a paper prints them: their intervals, and how far two independent ones are
apart. The formulas and where they come from stand in docs/claims.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Protocol

_NEARLY_NORMAL = 1000


@lru_cache(maxsize=256)
def t_quantile(share: float, freedom: int) -> float:
    """The value that a t variable with `freedom` >= 1 stays below with probability `share`.

    Found by bisection on the distribution function, whose finite series for whole degrees of
    freedom are 26.7.3 and 26.7.4 of Abramowitz and Stegun (1964). From 1000 degrees on: the first
    two terms of the expansion around the normal quantile (26.7.5), exact to 1e-8.
    """
    if freedom < 1 or not 0 < share < 1:
        raise ValueError(f"no quantile of share {share} with {freedom} degrees of freedom")
    if share < 0.5:
        return -t_quantile(1 - share, freedom)
    if freedom >= _NEARLY_NORMAL:
        z = NormalDist().inv_cdf(share)
        first = (z**3 + z) / 4
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + first / freedom + second / freedom**2
    low, high = 0.0, 2.0
    while _below(high, freedom) < share:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if _below(middle, freedom) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def two_sided(t: float, freedom: int) -> float:
    """The probability that a t variable lies at least |t| from zero."""
    if math.isinf(t):
        return 0.0
    return min(1.0, max(0.0, 2 * (1 - _below(abs(t), freedom))))


def _below(t: float, freedom: int) -> float:
    """P(T <= t) for t >= 0."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    # Terms cos^k times a product of ratios; k runs over numbers of the other parity.
    term, total = (cosine, cosine) if odd else (1.0, 1.0)
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= (k - 1) / k * cosine**2
        total += term
    if odd:
        within = 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
    else:
        within = sine * total
    return 0.5 + within / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedMean:
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


class MeanEstimate(Protocol):
    """A mean that is known to some interval."""

    @property
    def mean(self) -> float: ...

    def interval(self, confidence: float) -> tuple[float, float]: ...


def interval_of_difference(
    one: MeanEstimate, other: MeanEstimate, confidence: float
) -> tuple[float, float]:
    """Of one mean minus an independent other one, from the limits of both (Newcombe 1998, method
    10, for shares; Zou and Donner 2008 for any parameters)."""
    difference = one.mean - other.mean
    one_low, one_high = one.interval(confidence)
    other_low, other_high = other.interval(confidence)
    below = math.hypot(one.mean - one_low, other_high - other.mean)
    above = math.hypot(one_high - one.mean, other.mean - other_low)
    return difference - below, difference + above
