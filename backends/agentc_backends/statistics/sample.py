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
from typing import TypeAlias

from agentc_backends.statistics.intervals import ReportedMean, t_quantile, two_sided

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

        end = _last_accepted(excess, self.mean, bound)
        if (flips := self._flips) is None:
            return end
        other = _last_accepted(lambda mean: level - flips.p_value(mean), self.mean, bound)
        outer = min(end, other) if bound < self.mean else max(end, other)
        if self.few or outer == end:
            return outer
        return _last_accepted(lambda mean: level - self.p_value(mean), end, outer)

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

    def at(self, mean: float, n: int, runs: int) -> ReportedMean:
        """What somebody else's mean over `n` tasks would be known to, if their scores varied as
        these do. How `runs` vary cannot be told from one of ours, so it makes no difference."""
        deviation = self._deviation if n > 1 else None
        return ReportedMean(mean=mean, n=n, bounds=self.bounds, deviation=deviation)

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


def depends_on_seen_range(one: Sample, confidence: float) -> bool:
    """Whether the interval of differences would be notably wider if tasks that were not seen could
    move as far as the declared range lets them: rare large differences would not be covered."""
    if not one.paired or one.support == one.bounds:
        return False
    told, open_ = one.interval(confidence), one.anywhere().interval(confidence)
    return open_[1] - open_[0] > _WIDER * (told[1] - told[0])


def _last_accepted(excess: Callable[[float], float], inside: float, outside: float) -> float:
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


Counts: TypeAlias = Sequence[tuple[float, int]]
"""Each value that was seen, with how often."""

_NEWTON_STEPS = 100
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
    for _ in range(_NEWTON_STEPS):
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


_LISTED = 12
"""Up to so many differences, every sum is kept as it is."""
_LATTICE = 840
"""Beyond, sizes are so many parts of the largest: halves, thirds, up to eighths are still exact."""
_SLOT = 64
"""Bits for one count of sign patterns: 63 differences have less than 2**_SLOT of them."""


@dataclass(frozen=True, slots=True)
class SignFlips:
    """Of the sign patterns with k tasks better, how many sum to at least (`above`) and to at most
    (`below`) what was seen. `size` is the sum of all magnitudes over the number of tasks: the mean
    difference if every moved task had got better."""

    above: tuple[int, ...]
    below: tuple[int, ...]
    size: float

    def p_value(self, mean: float) -> float:
        """Two-sided: of the hypothesis that the mean difference is `mean`, each task that moved
        being better with the one chance that gives it."""
        chance = (1 + mean / self.size) / 2
        if not 0 <= chance <= 1:
            return 0.0
        tails = (_share(self.above, chance), _share(self.below, chance))
        return min(1.0, 2 * min(tails))


def sign_flips(moved: Sequence[float], n: int) -> SignFlips:
    """Of the differences other than zero among those of `n` tasks; from one to 63 of them."""
    above, below = _listed(moved) if len(moved) <= _LISTED else _on_a_lattice(moved)
    return SignFlips(tuple(above), tuple(below), sum(map(abs, moved)) / n)


def _listed(moved: Sequence[float]) -> tuple[list[int], list[int]]:
    """How many patterns reach what was seen, from above and from below, by how many are better."""
    largest = max(abs(each) for each in moved)
    sums: dict[tuple[float, int], int] = {(0.0, 0): 1}
    for each in moved:
        # Rounded, so that equal sums in another order meet; relative to the largest difference.
        size = abs(each) / largest
        after: dict[tuple[float, int], int] = {}
        for (total, better), patterns in sums.items():
            for place in ((round(total + size, 9), better + 1), (round(total - size, 9), better)):
                after[place] = after.get(place, 0) + patterns
        sums = after
    seen = sum(moved) / largest
    above, below = [0] * (len(moved) + 1), [0] * (len(moved) + 1)
    for (total, better), patterns in sums.items():
        if total >= seen - 1e-6:
            above[better] += patterns
        if total <= seen + 1e-6:
            below[better] += patterns
    return above, below


def _on_a_lattice(moved: Sequence[float]) -> tuple[list[int], list[int]]:
    """The same of more differences, sums within the rounding counted as reached. The patterns with
    k better are one number, whose digit at s, in base 2**_SLOT, counts those whose sum is s."""
    largest = max(abs(each) for each in moved)
    parts = [_LATTICE * abs(each) / largest for each in moved]
    sizes = [round(part) for part in parts]
    # Each rounded size may be off by half a part.
    slack = sum(abs(p - s) > 1e-6 for p, s in zip(parts, sizes, strict=True)) // 2
    if not slack:
        common = math.gcd(*sizes)
        sizes = [size // common for size in sizes]
    patterns = [1] + [0] * len(moved)
    for done, size in enumerate(sizes, start=1):
        for better in range(done, 0, -1):
            patterns[better] += patterns[better - 1] << (_SLOT * size)
    seen = sum(size for size, each in zip(sizes, moved, strict=True) if each > 0)
    first, last = max(0, seen - slack), seen + slack
    digit = (1 << _SLOT) - 1
    # A number is its sum of digits modulo its base less one.
    above = [number >> (_SLOT * first) for number in patterns]
    below = [number & ((1 << (_SLOT * (last + 1))) - 1) for number in patterns]
    return [number % digit for number in above], [number % digit for number in below]


def _share(patterns: Sequence[int], chance: float) -> float:
    """The probability of the patterns when each sign is a plus with `chance`."""
    most = len(patterns) - 1
    return sum(
        count * chance**better * (1 - chance) ** (most - better)
        for better, count in enumerate(patterns)
        if count
    )
