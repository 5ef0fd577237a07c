"""How much a run of RL had played when its return first reached a value: from its curve.

Sample complexity, as ArCHer compares it with PPO's (Zhou et al., ICML 2024). The curve's points are
noisy, so three in a row count together. What the policy plays before its first update is its start,
and passes nothing. Limits of one run are those of its games; `over_runs` makes one statement of
several. A run that does not get there says only that it takes more than it played.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from agentc_backends.statistics.intervals import t_quantile

COUNTED: Mapping[str, str] = {
    "trajectories_to": "trajectories",
    "steps_to": "steps",
    "tokens_to": "reply_tokens",
}
"""A metric, and the number of a row of the curve that it counts in."""
WINDOW = 3
"""Points that count together."""
_ACTOR = "actor"
"""What a row of the curve has from the first update of the policy on."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The mean of `n` episodes with their standard deviation, when `played` had been played."""

    played: float
    mean: float
    sd: float
    n: int


@dataclass(frozen=True, slots=True)
class Passage:
    """What had been played at the first passage, with the limits that the games leave open. A
    number that is infinite means never; `end` is what the run played in all, so that `low` is no
    more than that: of what never got there only a lower bound is known. `step` is the logarithm
    of how far `at` lies from the point before it: between the two nothing was seen."""

    at: float
    low: float
    high: float
    end: float
    step: float


@dataclass(frozen=True, slots=True)
class BoundedNumber:
    """A number between `low` and `high`, which are alike where it is known and infinite or 0 where
    nothing is. `coarseness` is the variance of its logarithm that comes from the curve's points
    lying apart: a number that is rounded to them is taken to lie anywhere between two, evenly."""

    low: float
    high: float
    coarseness: float = 0.0

    @property
    def exact(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class OverRuns:
    """A number of `runs` runs: `value` lies in `limits` of itself where it is a bound, and `low` to
    `high` is its interval. The `method` is of one run its `games`, of several their geometric
    `mean`, or their `median` where some are known by a bound alone."""

    value: BoundedNumber
    low: float
    high: float
    runs: int
    method: str


def curve_points(curve: Sequence[Mapping[str, Any]], counted: str) -> list[CurvePoint]:
    """Of the rows of curve.jsonl: the policy's evaluations where the run has some, else the
    episodes that it trained on. What an iteration plays counts from that iteration on."""
    series = _series(curve)
    return [
        CurvePoint(float(row[counted]), *_spread(row[series])) for row in curve if series in row
    ]


def points_of_start(curve: Sequence[Mapping[str, Any]]) -> int:
    """How many of the first points are of the policy that the run starts from. An iteration plays
    before it learns, so the first that updates the policy is one of them. Where the policy is never
    updated by itself, but chosen by its critic, only the first iteration is."""
    first = next((at for at, row in enumerate(curve) if _ACTOR in row), 0)
    series = _series(curve)
    return sum(series in row for row in curve[: first + 1])


def mean_of_start(points: Sequence[CurvePoint], start: int) -> float | None:
    """The mean of the first `start` points; None where there are none."""
    return fmean(point.mean for point in points[:start]) if start else None


def has_risen(
    points: Sequence[CurvePoint],
    start: int,
    at: float,
    confidence: float,
    window: int = WINDOW,
) -> bool:
    """Whether the points of a passage at `at` are shown to lie above those of the start. The
    passage is the first of many windows, each of which could have been it (Bonferroni)."""
    end = next((n for n, point in enumerate(points) if point.played == at), None)
    if end is None or not start:
        return end is not None
    before, few = points[:start], points[max(start, end + 1 - window) : end + 1]
    rise = fmean(point.mean for point in few) - fmean(point.mean for point in before)
    error = math.hypot(_error(before), _error(few))
    freedom = max(1, sum(point.n - 1 for point in (*before, *few)))
    looks = max(1, len(points) - start)
    return rise > error * t_quantile(1 - (1 - confidence) / 2 / looks, freedom)


def first_passage(
    points: Sequence[CurvePoint],
    reach: float,
    confidence: float,
    window: int = WINDOW,
    start: int = 0,
) -> Passage:
    """At the last of the first `window` points in a row whose mean is at least `reach`: by then it
    has been seen.

    The limits: the first at which a mean of that height is not ruled out, and the first at which a
    lower one is. All windows are looked at, so each limit is one of as many (Bonferroni). A curve
    of fewer points is one window. Windows of the first `start` points alone are of a policy that
    has learned nothing, and are left out. Raises ValueError where there is no point.
    """
    if not points:
        raise ValueError("a curve without points passes nothing")
    window = min(window, len(points))
    windows = [
        points[n : n + window] for n in range(len(points) - window + 1) if n + window > start
    ]
    at, low, high, end = math.inf, math.inf, math.inf, points[-1].played
    for few in windows:
        mean = fmean(point.mean for point in few)
        error = _error(few)
        freedom = max(1, sum(point.n - 1 for point in few))
        off = error * t_quantile(1 - (1 - confidence) / 2 / len(windows), freedom)
        played = few[-1].played
        if mean >= reach:
            at = min(at, played)
        if mean + off >= reach:
            low = min(low, played)
        if mean - off >= reach:
            high = min(high, played)
    before = max((point.played for point in points if point.played < at), default=0.0)
    # Before the first point there is none; half of it is as far as another one would lie.
    step = 0.0 if math.isinf(at) else math.log(at / max(before, at / 2))
    return Passage(at, min(low, end), high, end, step)


def ratio(one: Passage, other: Passage) -> BoundedNumber:
    """Of two first passages; where one of them is a bound, the ratio is."""
    if math.isinf(one.at) and math.isinf(other.at):
        return BoundedNumber(0.0, math.inf)
    if math.isinf(one.at):
        return BoundedNumber(one.end / other.at, math.inf)
    if math.isinf(other.at):
        return BoundedNumber(0.0, one.at / other.end)
    known = one.at / other.at
    return BoundedNumber(known, known, (one.step**2 + other.step**2) / 12)


def count(one: Passage) -> BoundedNumber:
    """The first passage by itself."""
    if math.isinf(one.at):
        return BoundedNumber(one.end, math.inf)
    return BoundedNumber(one.at, one.at, one.step**2 / 12)


def over_one_run(one: Passage, other: Passage | None) -> OverRuns:
    """By the games alone: other seeds may well be further apart. For a ratio the limits of both
    have to hold together, so each has to be made for half of the errors."""
    if other is None:
        return OverRuns(count(one), one.low, one.high, 1, "games")
    low = 0.0 if math.isinf(other.high) else one.low / other.high
    return OverRuns(ratio(one, other), low, one.high / other.low, 1, "games")


def over_runs(values: Sequence[BoundedNumber], confidence: float) -> OverRuns:
    """Of two runs or more. Where all are known: the geometric mean, with Student's interval of the
    mean of their logarithms, whose variance is what they show and their coarseness. Else the
    median, with the interval of order statistics (Conover, Practical Nonparametric Statistics,
    section 3.2), which bounds do not disturb and which takes six runs at 95 %; of fewer nothing is
    known."""
    runs = len(values)
    if all(value.exact for value in values):
        logs = [math.log(value.low) for value in values]
        mean = fmean(logs)
        variance = stdev(logs) ** 2 + fmean(value.coarseness for value in values)
        off = t_quantile(0.5 + confidence / 2, runs - 1) * math.sqrt(variance / runs)
        middle = math.exp(mean)
        return OverRuns(
            BoundedNumber(middle, middle), math.exp(mean - off), math.exp(mean + off), runs, "mean"
        )
    lows, highs = (sorted(getattr(value, end) for value in values) for end in ("low", "high"))
    left = (runs - 1) // 2
    median = BoundedNumber(lows[left], highs[runs - 1 - left])
    rank = _rank(runs, confidence)
    if rank is None:
        return OverRuns(median, 0.0, math.inf, runs, "median")
    return OverRuns(median, lows[rank], highs[runs - 1 - rank], runs, "median")


def _rank(runs: int, confidence: float) -> int | None:
    """How many of the smallest, and of the largest, may be left out of an interval of the median;
    None where even all of them are too few."""
    outside, rank = 0.0, None
    for left in range(runs):
        outside += 2 * math.comb(runs, left) / 2**runs
        if outside > 1 - confidence:
            break
        rank = left
    return rank


def _series(curve: Sequence[Mapping[str, Any]]) -> str:
    return "evaluation" if any("evaluation" in row for row in curve) else "return"


def _error(points: Sequence[CurvePoint]) -> float:
    """The standard error of the mean of points."""
    return math.sqrt(sum(point.sd**2 / point.n for point in points)) / len(points)


def _spread(told: Mapping[str, Any]) -> tuple[float, float, int]:
    return float(told["mean"]), float(told["sd"]), int(told["n"])
