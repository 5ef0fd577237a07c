"""One mean over tasks: its interval and its p-value, which are of one test and cannot disagree.

The test is the score test with Student's quantiles; where few tasks moved, the exact sign-flip
test must reject as well. The interval holds every mean that is not rejected.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist, fmean, stdev

from agentc_backends.inference.flips import SignFlips, sign_flips
from agentc_backends.inference.printed import Printed
from agentc_backends.inference.restricted import Counts, restricted_variance
from agentc_backends.inference.student import t_quantile, two_sided

FEW = 12
"""Up to so many tasks that moved, their signs are counted out, and the range is the declared one:
what was seen says too little of what tasks can do."""
_STEPS = 90


@dataclass(frozen=True)
class Sample:
    """Scores of tasks, or differences (`paired`), within `bounds`; `seen` is the range of what
    tasks were seen to do, which bounds them where more than a few of them say so."""

    values: tuple[float, ...]
    bounds: tuple[float, float]
    paired: bool = False
    seen: tuple[float, float] | None = None

    @property
    def n(self) -> int:
        return len(self.values)

    @cached_property
    def mean(self) -> float:
        return min(max(fmean(self.values), self.bounds[0]), self.bounds[1])

    @property
    def freedom(self) -> int:
        """Degrees of freedom of Student's quantile."""
        return max(1, self.n - 1)

    @cached_property
    def moved(self) -> tuple[float, ...]:
        """Differences other than zero."""
        return tuple(value for value in self.values if value)

    @property
    def few(self) -> bool:
        """Whether so few tasks moved that the exact test is needed."""
        return self.paired and len(self.moved) <= FEW

    @property
    def method(self) -> str:
        """The name of the test."""
        return "score and sign-flip" if self._flips is not None else "score"

    def interval(self, confidence: float) -> tuple[float, float]:
        """Two-sided: every mean that the test does not reject at 1 - `confidence`."""
        level = 1 - confidence
        quantile = t_quantile(0.5 + confidence / 2, self.freedom)
        low, high = (self._end(bound, quantile, level) for bound in self.bounds)
        if self.paired and self.p_value() >= level:
            return min(low, 0.0), max(high, 0.0)
        if self.paired:
            # Rounding must not let in what the p-value leaves out.
            above, below = math.nextafter(0.0, 1.0), math.nextafter(0.0, -1.0)
            return (max(low, above), high) if self.mean > 0 else (low, min(high, below))
        return low, high

    def _end(self, bound: float, quantile: float, level: float) -> float:
        """The last mean towards `bound` that either test keeps."""

        def excess(mean: float) -> float:
            return min(self._score(mean), 4 * quantile) - quantile

        end = _last_kept(excess, self.mean, bound)
        if (flips := self._flips) is not None:
            other = _last_kept(lambda mean: level - flips.p_value(mean), self.mean, bound)
            end = min(end, other) if bound < self.mean else max(end, other)
        return end

    def p_value(self, mean: float = 0.0) -> float:
        """Two-sided, of the hypothesis that the mean is `mean`."""
        chance = two_sided(self._score(mean), self.freedom)
        return chance if self._flips is None else max(chance, self._flips.p_value(mean))

    def standard_error(self) -> float:
        """Of the mean, for planning; where nothing varies, few tasks moved, or scores are all or
        nothing, by the interval, which holds there as well."""
        if self._deviation is not None and not self.few:
            return self._deviation / math.sqrt(self.n)
        low, high = self.interval(0.95)
        return (high - low) / 2 / NormalDist().inv_cdf(0.975)

    def at(self, mean: float, n: int, runs: int) -> Printed:
        """What somebody else's mean over `n` tasks would be known to, if their scores varied as
        these do. How `runs` vary cannot be told from one of ours, so it makes no difference."""
        deviation = self._deviation if n > 1 else None
        return Printed(mean=mean, n=n, bounds=self.bounds, deviation=deviation)

    @cached_property
    def _deviation(self) -> float | None:
        """None where the mean alone says how much the scores vary, or can vary at most."""
        if self.n < 2 or all(value in self.bounds for value in self.values):
            return None
        return stdev(self.values) or None

    @cached_property
    def _counts(self) -> Counts:
        return sorted(Counter(self.values).items())

    @cached_property
    def _support(self) -> tuple[float, float]:
        common = 0 if self.paired else max(count for _, count in self._counts)
        told = len(self.moved) if self.paired else self.n - common
        if self.seen is None or told <= FEW:
            return self.bounds
        return max(self.bounds[0], self.seen[0]), min(self.bounds[1], self.seen[1])

    @cached_property
    def _flips(self) -> SignFlips | None:
        return sign_flips(self.moved, self.n) if self.few and self.moved else None

    def _score(self, mean: float) -> float:
        """Standard errors from the mean that was seen to `mean`, were that the true one."""
        distance = abs(self.mean - mean)
        if distance <= 1e-12 * (self.bounds[1] - self.bounds[0]):
            return 0.0
        low, high = self._support
        if not low < mean < high:
            return math.inf
        variance = restricted_variance(self._counts, mean, self._support)
        return distance / math.sqrt(variance / self.n) if variance > 0 else math.inf


def sample(
    values: Sequence[float],
    bounds: tuple[float, float],
    *,
    paired: bool = False,
    seen: tuple[float, float] | None = None,
) -> Sample:
    """Raises ValueError without a score."""
    if not values:
        raise ValueError("no task has a score")
    # Scores a little outside of a range that was declared too narrow widen it.
    wide = min(bounds[0], *values), max(bounds[1], *values)
    return Sample(tuple(values), wide, paired, seen)


def _last_kept(excess: Callable[[float], float], inside: float, outside: float) -> float:
    """The last place on the way outwards where `excess` is not above zero: by false position, and
    by halving the bracket at every third step."""
    at_inside, at_outside = excess(inside), excess(outside)
    if at_outside <= 0 or inside == outside:
        return outside
    close = 1e-9 * abs(outside - inside)
    for step in range(_STEPS):
        if abs(outside - inside) <= close:
            break
        place = (inside + outside) / 2
        if step % 3 and at_inside < 0:
            # A little beyond the root as the line has it, so that the bracket closes on both sides.
            root = outside - at_outside * (outside - inside) / (at_outside - at_inside)
            place = root + 1e-3 * (outside - inside) * (1 if step % 3 == 1 else -1)
            place = min(max(place, min(inside, outside)), max(inside, outside))
        found = excess(place)
        if found <= 0:
            inside, at_inside = place, found
        else:
            outside, at_outside = place, found
    return inside
