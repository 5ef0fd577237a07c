"""Student's t distribution for whole degrees of freedom: quantiles and tails."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

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
