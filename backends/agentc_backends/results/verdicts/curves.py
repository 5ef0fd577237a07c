"""Verdicts on claims about curves: how much a run of RL played until it reached a return, by itself
or as a share of what another one played (`statistics/passages.py`).

Such a claim has no printed noise to be compared with: it is of a side, and what is shown is an
interval over seeds, or over the games of one run, which the reason says. A policy that never learns
reproduces none: a run that starts at the return is not judged, and one that passes it has to be
shown to have risen above its start.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentc_backends.results.verdicts.rules import (
    CONTRADICTED,
    INCONCLUSIVE,
    NOT_JUDGED,
    SUPPORTED,
    Claim,
)
from agentc_backends.statistics.passages import (
    COUNTED,
    BoundedNumber,
    CurvePoint,
    OverRuns,
    Passage,
    count,
    curve_points,
    first_passage,
    has_risen,
    mean_of_start,
    over_one_run,
    over_runs,
    points_of_start,
    ratio,
)

Pair = tuple[Mapping[str, Any], Mapping[str, Any] | None]
"""What is known of a run, and of the one that it is held against (`measured.read_metrics`)."""


@dataclass(frozen=True, slots=True)
class _Curve:
    """The points of a run, the first `start` of which are of the policy that it starts from."""

    name: str
    points: Sequence[CurvePoint]
    start: int


def judge_curves(claim: Claim, runs: Sequence[Pair], confidence: float) -> dict[str, Any]:
    """What an entry of claims.json says besides the claim itself, its reason too."""
    of_ratio = runs[0][1] is not None
    # One run's limits of a ratio hold together where each is wrong half as often.
    each = 1 - (1 - confidence) / 2 if of_ratio else confidence
    curves = [
        (
            _curve(claim, claim["stage"], one),
            None if other is None else _curve(claim, claim["difference_from"], other),
        )
        for one, other in runs
    ]
    if there := _there_already(claim, curves):
        return {"because": there}
    passages = [
        (_passage(claim, one, each), None if other is None else _passage(claim, other, each))
        for one, other in curves
    ]
    known = [count(one) if other is None else ratio(one, other) for one, other in passages]
    found = over_one_run(*passages[0]) if len(passages) == 1 else over_runs(known, confidence)
    never = _never(claim, passages)
    if found.value.low == 0 and math.isinf(found.value.high):
        return {"because": f"{never}: nothing is known of how they compare"}
    side, value = claim["relation"], claim["value"]
    holds = found.high < value if side == "below" else found.low > value
    fails = found.low > value if side == "below" else found.high < value
    verdict = SUPPORTED if holds else CONTRADICTED if fails else INCONCLUSIVE
    flat = None
    if verdict == SUPPORTED:
        flat = _not_risen(claim, curves, passages, confidence)
    if flat is not None:
        verdict = INCONCLUSIVE
    within = [_on_side(each, side, value) for each in known]
    parts = [
        flat or _reason(verdict, side),
        _how(found),
        never,
        _runs_within(within, side, verdict),
    ]
    return {
        "verdict": verdict,
        "because": "; ".join(filter(None, parts)),
        "observed": _observed(found, confidence),
    }


def _observed(found: OverRuns, confidence: float) -> dict[str, Any]:
    """`bound` says on which side of `mean` the number lies where it is a bound; an end of the
    interval that is open is null."""
    value = found.value
    bound = None if value.exact else "above" if math.isinf(value.high) else "below"
    middle = value.high if bound == "below" else value.low
    return {
        "mean": middle,
        "low": found.low,
        "high": None if math.isinf(found.high) else found.high,
        "bound": bound,
        "confidence": confidence,
        "n": found.runs,
        "method": found.method,
    }


def _curve(claim: Claim, name: str, run: Mapping[str, Any]) -> _Curve:
    points = curve_points(run["curve"], COUNTED[claim["metric"]])
    return _Curve(name, points, points_of_start(run["curve"]))


def _passage(claim: Claim, curve: _Curve, confidence: float) -> Passage:
    return first_passage(curve.points, claim["reach"], confidence, start=curve.start)


def _there_already(claim: Claim, curves: Sequence[tuple[_Curve, _Curve | None]]) -> str | None:
    """Which run begins at the return that is to be reached, if one does: its passage would measure
    the noise of its first games."""
    for curve in (each for pair in curves for each in pair if each is not None):
        mean = mean_of_start(curve.points, curve.start)
        if mean is not None and mean >= claim["reach"]:
            return (
                f"{curve.name} starts at {mean:.4g}, and {claim['reach']:g} is reached before "
                "anything is learned: claim a `reach` above the start"
            )
    return None


def _not_risen(
    claim: Claim,
    curves: Sequence[tuple[_Curve, _Curve | None]],
    passages: Sequence[tuple[Passage, Passage | None]],
    confidence: float,
) -> str | None:
    """Which run passes the return without having risen above its start, as far as its games show,
    where the claim is about that run's passage."""
    place = 0 if claim["relation"] == "below" else 1
    for pair, passed in zip(curves, passages, strict=True):
        curve, passage = pair[place], passed[place]
        if curve is None or passage is None or math.isinf(passage.at):
            continue
        if not has_risen(curve.points, curve.start, passage.at, confidence):
            return (
                f"{curve.name} is not shown to have risen above its start where it reaches "
                f"{claim['reach']:g}"
            )
    return None


def _on_side(known: BoundedNumber, side: str, value: float) -> bool:
    return known.high < value if side == "below" else known.low > value


def _reason(verdict: str, side: str) -> str:
    other = "below" if side == "above" else "above"
    return {
        SUPPORTED: f"the entire 95% CI is {side} the claimed value",
        CONTRADICTED: f"the entire 95% CI is {other} the claimed value",
        INCONCLUSIVE: "the 95% CI includes the claimed value",
        NOT_JUDGED: "",
    }[verdict]


def _how(found: OverRuns) -> str:
    if found.method == "games":
        return (
            "the interval of one run is that of its own games only: another seed trains otherwise"
        )
    if found.method == "mean":
        return f"geometric mean of {found.runs} runs, Student's interval of its logarithm"
    if math.isinf(found.high) and found.low == 0:
        return (
            f"median of {found.runs} runs, of which some are known only by a bound: so few have "
            "no interval then (six have one)"
        )
    return f"median of {found.runs} runs, by their order: some are known only by a bound"


def _runs_within(within: Sequence[bool], side: str, verdict: str) -> str:
    if len(within) == 1 or verdict != INCONCLUSIVE:
        return ""
    return f"it lies {side} the number in {sum(within)} of {len(within)} runs"


def _never(claim: Claim, passages: Sequence[tuple[Passage, Passage | None]]) -> str:
    """Who did not get there in how many runs."""
    ours = [one for one, _ in passages]
    theirs = [other for _, other in passages if other is not None]
    unit = claim["metric"].removesuffix("_to")
    told = []
    for who, all_of in ((claim["stage"], ours), (claim["difference_from"], theirs)):
        short = [each.end for each in all_of if math.isinf(each.at)]
        if short:
            runs = f" in {len(short)} of {len(all_of)} runs" if len(all_of) > 1 else ""
            told.append(f"{who} did not get there{runs} within {min(short):g} {unit}")
    return ", and ".join(told)
