"""One mean over tasks: its interval and its p-value, which are of one test and cannot disagree.

The test is the score test with Student's quantiles; where few tasks moved, the exact sign-flip
test must reject as well. With more of them the exact test and the declared range fade out step by
step. The interval holds every mean that is not rejected.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist, fmean, stdev

from agentc_backends.statistics.flips import SignFlips, sign_flips
from agentc_backends.statistics.printed import Printed
from agentc_backends.statistics.restricted import Counts, restricted_variance
from agentc_backends.statistics.student import t_quantile, two_sided

FEW = 12
"""Up to so many tasks that moved, the larger p-value of both tests counts, and the range is the
declared one: what was seen says too little of what tasks can do."""
MANY = 36
"""From so many on, the score test alone, within what was seen."""
_WIDER = 1.1
_STEPS = 90


@dataclass(frozen=True)
class Sample:
    """Scores of tasks, or differences (`paired`), within `bounds`; `seen` is the range of what
    tasks were seen to do, which bounds them where many of them say so."""

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
        """Whether so few tasks moved that the exact test has to reject as well."""
        return self.paired and len(self.moved) <= FEW

    @property
    def sparse(self) -> float:
        """From 1, where few tasks moved, to 0, where many did."""
        return min(1.0, max(0.0, (MANY - len(self.moved)) / (MANY - FEW)))

    def anywhere(self) -> Sample:
        """The same, with the whole declared range still open to tasks that were not seen."""
        return replace(self, seen=None)

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
        """The last mean towards `bound` that the test keeps."""

        def excess(mean: float) -> float:
            return min(self._score(mean), 4 * quantile) - quantile

        end = _last_kept(excess, self.mean, bound)
        if (flips := self._flips) is None:
            return end
        other = _last_kept(lambda mean: level - flips.p_value(mean), self.mean, bound)
        outer = min(end, other) if bound < self.mean else max(end, other)
        if self.few or outer == end:
            return outer
        return _last_kept(lambda mean: level - self.p_value(mean), end, outer)

    def p_value(self, mean: float = 0.0) -> float:
        """Two-sided, of the hypothesis that the mean is `mean`."""
        chance = two_sided(self._score(mean), self.freedom)
        if self._flips is None:
            return chance
        more = max(0.0, self._flips.p_value(mean) - chance)
        return chance + self.sparse * more

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
    def support(self) -> tuple[float, float]:
        """What the test lets a task that was not seen do."""
        if self.seen is None:
            return self.bounds
        near = max(self.bounds[0], self.seen[0]), min(self.bounds[1], self.seen[1])
        if self.paired:
            ends = zip(near, self.bounds, strict=True)
            low, high = (end + self.sparse * (bound - end) for end, bound in ends)
            return low, high
        common = max(count for _, count in self._counts)
        return self.bounds if self.n - common <= FEW else near

    @cached_property
    def _flips(self) -> SignFlips | None:
        few_enough = self.paired and 0 < len(self.moved) < MANY
        return sign_flips(self.moved, self.n) if few_enough else None

    def _score(self, mean: float) -> float:
        """Standard errors from the mean that was seen to `mean`, were that the true one."""
        distance = abs(self.mean - mean)
        if distance <= 1e-12 * (self.bounds[1] - self.bounds[0]):
            return 0.0
        low, high = self.support
        if not low < mean < high:
            return math.inf
        variance = restricted_variance(self._counts, mean, self.support)
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


def rests_on_seen(one: Sample, confidence: float) -> bool:
    """Whether the interval of differences would be notably wider if tasks that were not seen could
    move as far as the declared range lets them: rare large differences would not be covered."""
    if not one.paired or one.support == one.bounds:
        return False
    told, open_ = one.interval(confidence), one.anywhere().interval(confidence)
    return open_[1] - open_[0] > _WIDER * (told[1] - told[0])


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
