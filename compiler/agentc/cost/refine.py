"""refine: a prior corrected by observations of like jobs, by shrinkage in the logarithm.

An observation is the logarithm of actual over prior, with a weight for likeness. See docs/cost.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentc.cost.quantity import Quantity

TIME_NOISE = 0.35
SIZE_NOISE = 0.15
"""Standard deviation (natural logarithm) that is assumed among equal jobs before any were seen, as
firmly as one observation would: of times, and of sizes such as tokens of a row."""
_LEAST_NOISE = 0.05
_NORMAL = 1.2533
"""From the mean absolute deviation of a normal distribution to its standard deviation."""
_FAR = 2.3
"""Deviations beyond a factor of ten count as that: one broken clock widens no band for ever."""


def refine(
    prior: Quantity, observed: Sequence[tuple[float, float]], noise: float = TIME_NOISE
) -> Quantity:
    """The prior corrected by (ln actual/prior, weight) pairs.

    Without observations it is the prior itself; with many like ones the median is theirs and the
    spread is how much they differ among each other.
    """
    observed = [(ratio, weight) for ratio, weight in observed if weight > 0.01]
    if not observed or prior.median <= 0:
        return prior
    if prior.spread == 0:
        return prior  # what the settings fix is no guess, and nothing corrects it
    # A prior's variance is of two kinds: jobs differ among each other, and the guess is off.
    before = prior.spread**2
    usual = min(noise**2, 0.75 * before)
    off = before - usual
    count = sum(weight for _, weight in observed)
    centre = weighted_median(observed)
    # Mean and not median deviation: a machine that is sometimes busy gives two clusters, and the
    # median deviation sees only the larger one.
    apart = _NORMAL * sum(w * min(abs(ratio - centre), _FAR) for ratio, w in observed) / count
    among = max((usual + count * apart**2) / (1 + count), _LEAST_NOISE**2)
    data = among / count
    trust = off / (off + data)
    return Quantity(
        prior.median * math.exp(trust * centre), math.sqrt(off * data / (off + data) + among)
    )


def weighted_median(pairs: Sequence[tuple[float, float]]) -> float:
    """The value with half of the weight on either side; between two when the half falls there."""
    ordered = sorted(pairs)
    half = sum(weight for _, weight in ordered) / 2
    passed = 0.0
    for place, (value, weight) in enumerate(ordered):
        passed += weight
        if math.isclose(passed, half) and place + 1 < len(ordered):
            return (value + ordered[place + 1][0]) / 2
        if passed > half:
            return value
    return ordered[-1][0]
