"""The variance of scores if their mean were another one: what a score interval is made of.

Of all distributions over the values seen and the two ends of the range, the likeliest one that has
the mean in question is taken (empirical likelihood: Owen 1988). For all-or-nothing scores that is
Wilson's variance, for paired all-or-nothing scores Tango's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Counts: TypeAlias = Sequence[tuple[float, int]]
"""Each value that was seen, with how often."""

_STEPS = 100
_CLOSE = 1e-13


def restricted_variance(counts: Counts, mean: float, support: tuple[float, float]) -> float:
    """Of one score around `mean`, under the likeliest distribution with that mean.

    The distribution has the weight c / (n (1 + tilt (y - mean))) at a value y seen c times, and at
    the end of `support` whatever weight these lack. `mean` lies within `support`.
    """
    n = sum(count for _, count in counts)
    away = [(value - mean, count) for value, count in counts]
    surplus = sum(distance * count for distance, count in away)
    if surplus == 0:
        return sum(count * distance**2 for distance, count in away) / n
    # The tilt takes weight from the side that has too much; at its limit the end gains weight.
    end = support[0] - mean if surplus > 0 else support[1] - mean
    if end == 0:
        return 0.0
    limit = -1 / end
    slope = _slope(away, limit)
    tilt = limit if slope is not None and slope * surplus >= 0 else _root(away, limit, surplus > 0)
    weights = [count / (n * (1 + tilt * distance)) for distance, count in away]
    variance = sum(w * distance**2 for w, (distance, _) in zip(weights, away, strict=True))
    if tilt == limit:
        variance += max(0.0, 1 - sum(weights)) * end**2
    return variance


def _slope(away: Counts, tilt: float) -> float | None:
    """Of the log-likelihood by the tilt; None where a value seen would lose all its weight."""
    total = 0.0
    for distance, count in away:
        weight = 1 + tilt * distance
        if weight <= _CLOSE:
            return None
        total += count * distance / weight
    return total


def _root(away: Counts, limit: float, upwards: bool) -> float:
    """The tilt between 0 and the limit at which the slope is zero: Newton's steps, kept inside."""
    inner, outer, tilt = 0.0, limit, 0.0
    for _ in range(_STEPS):
        slope = _slope(away, tilt)
        if slope is None or (slope < 0) == upwards:
            outer = tilt
        else:
            inner = tilt
        step = tilt
        if slope is not None:
            bend = sum(count * (d / (1 + tilt * d)) ** 2 for d, count in away)
            step = tilt + slope / bend
        within = min(inner, outer) < step < max(inner, outer)
        found = step if within else (inner + outer) / 2
        if abs(found - tilt) <= _CLOSE * abs(limit):
            return found
        tilt = found
    return tilt
