"""Intervals of means, by bootstrap or by the normal approximation. Standard library only.

The unit that is resampled is the task: attempts at one task are averaged first, so that they do
not count as independent. Generators have fixed seeds: the same scores give the same interval.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Any, Literal, TypeAlias

Method: TypeAlias = Literal["bootstrap", "normal"]
_SEED = "agentc/interval/1"


@dataclass(frozen=True, slots=True)
class IntervalRules:
    """The `interval`, `confidence` and `resamples` of a stage."""

    method: Method
    confidence: float
    resamples: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its limits; all None without values. One value is its own interval: what it
    says of the spread is nothing, which the count beside it shows."""

    mean: float | None
    low: float | None
    high: float | None


def interval_of_mean(values: Sequence[float], rules: IntervalRules) -> Interval:
    """The mean of `values` and its two-sided interval.

    bootstrap: percentiles of the means of `resamples` resamples (Efron and Tibshirani 1993,
    section 13.3). normal: mean plus or minus z times the standard error.
    """
    if not values:
        return Interval(None, None, None)
    mean = fmean(values)
    if len(values) < 2:
        return Interval(mean, mean, mean)
    if rules.method == "normal":
        reach = NormalDist().inv_cdf(0.5 + rules.confidence / 2) * stdev(values)
        reach /= math.sqrt(len(values))
        return Interval(mean, mean - reach, mean + reach)
    generator = random.Random(_SEED)
    size = len(values)
    means = sorted(
        math.fsum(generator.choices(values, k=size)) / size for _ in range(rules.resamples)
    )
    tail = (1 - rules.confidence) / 2
    low, high = _quantile(means, tail), _quantile(means, 1 - tail)
    # At a low confidence the percentiles of a skewed sample can miss the mean itself.
    return Interval(mean, min(low, mean), max(high, mean))


def described(interval: Interval, rules: IntervalRules) -> dict[str, Any]:
    """As it stands in metrics.json and comparison.json."""
    return {
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "confidence": rules.confidence,
        "method": rules.method,
    }


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Linear interpolation between order statistics."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
