"""Verdicts on claims: reproduced, not reproduced, or within noise: the data cannot tell.

Each of the first two is given only where its own statement holds with the stated confidence; see
docs/claims.md for the rules, their error rates and their sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

from agentc_backends.judge_claims.estimate import Estimate, estimate, interval_of_difference

Claim: TypeAlias = Mapping[str, Any]
Metrics: TypeAlias = Mapping[str, Any]

REPRODUCED = "reproduced"
WITHIN_NOISE = "within noise"
NOT_REPRODUCED = "not reproduced"
NOT_JUDGED = "not judged"
VERDICTS = (REPRODUCED, WITHIN_NOISE, NOT_REPRODUCED, NOT_JUDGED)


@dataclass(frozen=True, slots=True)
class Rules:
    """`confidence` of the intervals; `power` with which a detectable difference is noticed."""

    confidence: float
    power: float

    @property
    def one_sided(self) -> float:
        """The confidence whose two-sided interval errs on each side as often as the other one errs
        in all: what showing that a score lies inside a band takes (Schuirmann 1987)."""
        return 2 * self.confidence - 1

    def reach(self) -> float:
        """Standard errors from no difference to one that is noticed with the power."""
        normal = NormalDist()
        return normal.inv_cdf(0.5 + self.confidence / 2) + normal.inv_cdf(self.power)

    def reach_inside(self) -> float:
        """Standard errors that half a band must measure, so that a score in its middle is shown to
        be inside with the power."""
        normal = NormalDist()
        return normal.inv_cdf(self.confidence) + normal.inv_cdf(0.5 + self.power / 2)


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
        judged |= {"verdict": NOT_JUDGED, "because": f"scale {scale} is not the paper's"}
    return judged


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
        "because": _BECAUSE[verdict],
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


_BECAUSE = {
    REPRODUCED: "our interval lies inside the band around the paper's number",
    NOT_REPRODUCED: "the two numbers are further apart than chance and the tolerance explain",
    WITHIN_NOISE: "our interval reaches out of the band around the paper's number, but the "
    "difference may be chance",
}


def _judge_side(claim: Claim, ours: Estimate, rules: Rules) -> dict[str, Any]:
    """Above or below a number: the whole interval must lie on one side of it."""
    low, high = ours.interval(rules.confidence)
    side, value = claim["relation"], claim["value"]
    if side == "below":
        holds, fails = high < value, low > value
    else:
        holds, fails = low > value, high < value
    if holds:
        verdict, because = REPRODUCED, f"our whole interval lies {side} the number"
    elif fails:
        other = "below" if side == "above" else "above"
        verdict, because = NOT_REPRODUCED, f"our whole interval lies {other} the number"
    else:
        verdict, because = WITHIN_NOISE, "our interval holds the number"
    return {
        "verdict": verdict,
        "because": because,
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
