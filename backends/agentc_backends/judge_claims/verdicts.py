"""Verdicts on claims: reproduced, not reproduced, or within noise: the data cannot tell.

Each of the first two is given only where its own statement holds with the stated confidence; see
docs/claims.md for the rules, their error rates and their sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from agentc_backends.judge_claims.estimate import Estimate, estimate, interval_of_difference
from agentc_backends.judge_claims.pooled import Pooled, pool
from agentc_backends.judge_claims.rules import (
    NOT_JUDGED,
    NOT_REPRODUCED,
    REPRODUCED,
    WITHIN_NOISE,
    Rules,
)
from agentc_backends.judge_claims.scores import Claim, Metrics, read_scores
from agentc_backends.judge_claims.wording import explain


def judge(
    claim: Claim, metrics: Mapping[str, Metrics], rules: Rules, scale: str | None
) -> dict[str, Any]:
    """One entry of claims.json. `metrics` are those of the stages that the claim names."""
    told = {name: claim[name] for name in _TOLD}
    table, lost, problem = read_scores(claim, metrics)
    if problem is not None:
        return {**told, **_nothing(), "because": problem, "lost": lost}
    ours = _estimate(table, (claim["bounds"][0], claim["bounds"][1]))
    if claim["relation"] == "value":
        judged = _judge_value(claim, ours, rules)
    else:
        judged = _judge_side(claim, ours, rules)
    judged = {**told, **judged, "observed": described(ours, rules.confidence), "lost": lost}
    if scale is not None:
        because = f"scale {scale} is not the paper's"
        return judged | {"verdict": NOT_JUDGED, "because": because}
    return judged | {"because": explain(judged, rules)}


def _estimate(table: Sequence[Sequence[float]], bounds: tuple[float, float]) -> Estimate | Pooled:
    """Of one run, or of several. Runs that agree in every score say as much as one."""
    if len(table) > 1 and len(table[0]) > 1:
        pooled = pool(table, bounds)
        if pooled.standard_error() > 0:
            return pooled
    return estimate([fmean(scores) for scores in zip(*table, strict=True)], bounds)


_TOLD = (
    "name", "what", "table", "stage", "difference_from", "metric", "relation", "value",
    "tolerance", "n", "seeds", "percent", "gate",
)  # fmt: skip


def described(one: Estimate | Pooled, confidence: float) -> dict[str, Any]:
    """An estimate as it stands in claims.json."""
    low, high = one.interval(confidence)
    known = {"mean": one.mean, "low": low, "high": high, "n": one.n, "method": one.method}
    return {**known, "runs": one.runs} if isinstance(one, Pooled) else known


def _judge_value(claim: Claim, ours: Estimate | Pooled, rules: Rules) -> dict[str, Any]:
    """Inside the band around the printed number: reproduced. Further from it than chance on both
    sides explains (and than the tolerance): not reproduced."""
    paper = ours.at(claim["value"], claim["n"], claim["seeds"] or 1)
    tolerance = claim["tolerance"]
    printed = paper.interval(rules.confidence)
    if tolerance is None:
        band = printed
    else:
        band = claim["value"] - tolerance, claim["value"] + tolerance
    low, high = ours.interval(rules.one_sided)
    apart = interval_of_difference(ours, paper, rules.confidence)
    margin = tolerance or 0.0
    if band[0] <= low and high <= band[1]:
        verdict = REPRODUCED
    elif apart[0] > margin or apart[1] < -margin:
        verdict = NOT_REPRODUCED
    else:
        verdict = WITHIN_NOISE
    noise = math.hypot(ours.standard_error(), paper.standard_error())
    needed = None
    if isinstance(ours, Estimate):
        half = (band[1] - band[0]) / 2
        needed = math.ceil((rules.reach_inside() * ours.standard_error() / half) ** 2 * ours.n)
    return {
        "verdict": verdict,
        "paper": described(paper, rules.confidence),
        "band": list(band),
        "difference": {"mean": ours.mean - claim["value"], "low": apart[0], "high": apart[1]},
        "detectable": margin + rules.reach() * noise,
        "needed": needed,
    }


def _judge_side(claim: Claim, ours: Estimate | Pooled, rules: Rules) -> dict[str, Any]:
    """Above or below a number: the whole interval must lie on one side of it."""
    low, high = ours.interval(rules.confidence)
    side, value = claim["relation"], claim["value"]
    if side == "below":
        holds, fails = high < value, low > value
    else:
        holds, fails = low > value, high < value
    verdict = REPRODUCED if holds else NOT_REPRODUCED if fails else WITHIN_NOISE
    return {
        "verdict": verdict,
        "paper": None,
        "band": None,
        "difference": {"mean": ours.mean - value, "low": low - value, "high": high - value},
        "detectable": rules.reach() * ours.standard_error(),
        "needed": None,
    }


def _nothing() -> dict[str, Any]:
    return {
        "verdict": NOT_JUDGED,
        "paper": None,
        "band": None,
        "observed": None,
        "difference": None,
        "detectable": None,
        "needed": None,
    }
