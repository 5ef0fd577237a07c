"""Verdicts on claims: reproduced, not reproduced, or within noise: the data cannot tell.

Each of the first two is given only where its own statement holds with the stated confidence; see
docs/claims.md for the rules, their error rates and their sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from agentc_backends.judge_claims.estimate import Estimate, estimate, interval_of_difference
from agentc_backends.judge_claims.rules import (
    NOT_JUDGED,
    NOT_REPRODUCED,
    REPRODUCED,
    WITHIN_NOISE,
    Rules,
)
from agentc_backends.judge_claims.wording import explain

Claim: TypeAlias = Mapping[str, Any]
Metrics: TypeAlias = Mapping[str, Any]


def judge(
    claim: Claim, metrics: Mapping[str, Metrics], rules: Rules, scale: str | None
) -> dict[str, Any]:
    """One entry of claims.json. `metrics` are those of the stages that the claim names."""
    told = {name: claim[name] for name in _TOLD}
    scores, lost, problem = _scores(claim, metrics)
    if not scores:
        return {**told, **_nothing(), "because": problem or "no task has a score", "lost": lost}
    ours = estimate(scores, (claim["bounds"][0], claim["bounds"][1]))
    if claim["relation"] == "value":
        judged = _judge_value(claim, ours, rules)
    else:
        judged = _judge_side(claim, ours, rules)
    judged = {**told, **judged, "observed": described(ours, rules.confidence), "lost": lost}
    if scale is not None:
        because = f"scale {scale} is not the paper's"
        return judged | {"verdict": NOT_JUDGED, "because": because}
    return judged | {"because": explain(judged, rules)}


_TOLD = (
    "name", "what", "table", "stage", "difference_from", "metric", "relation", "value",
    "tolerance", "n", "seeds", "percent", "gate",
)  # fmt: skip


def described(one: Estimate, confidence: float) -> dict[str, Any]:
    """An estimate as it stands in claims.json."""
    low, high = one.interval(confidence)
    return {"mean": one.mean, "low": low, "high": high, "n": one.n, "method": one.method}


def _judge_value(claim: Claim, ours: Estimate, rules: Rules) -> dict[str, Any]:
    """Inside the band around the printed number: reproduced. Further from it than chance on both
    sides explains (and than the tolerance): not reproduced."""
    paper = ours.at(claim["value"], claim["n"])
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
    half = (band[1] - band[0]) / 2
    needed = (rules.reach_inside() * ours.standard_error() / half) ** 2 * ours.n
    return {
        "verdict": verdict,
        "paper": {
            "mean": claim["value"],
            "low": printed[0],
            "high": printed[1],
            "n": claim["n"],
            "method": paper.method,
        },
        "band": list(band),
        "difference": {"mean": ours.mean - claim["value"], "low": apart[0], "high": apart[1]},
        "detectable": margin + rules.reach() * noise,
        "needed": math.ceil(needed),
    }


def _judge_side(claim: Claim, ours: Estimate, rules: Rules) -> dict[str, Any]:
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


def _scores(claim: Claim, metrics: Mapping[str, Metrics]) -> tuple[list[float], int, str | None]:
    """The score of each task (or its difference from the baseline's), how many tasks were lost to
    infrastructure errors, and what is wrong if there are none."""
    measured, metric = metrics[claim["stage"]]["tasks"], claim["metric"]
    if claim["difference_from"] is None:
        scores = [task[metric] for task in measured.values() if task["attempts"]]
        return scores, len(measured) - len(scores), None
    baseline = metrics[claim["difference_from"]]["tasks"]
    if set(measured) != set(baseline):
        return [], 0, "the two evaluations were made on different tasks"
    scores = [
        task[metric] - baseline[name][metric]
        for name, task in measured.items()
        if task["attempts"] and baseline[name]["attempts"]
    ]
    return scores, len(measured) - len(scores), None
