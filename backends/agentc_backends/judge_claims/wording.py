"""The reason for a verdict, in a sentence: what terminal and report show below the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentc_backends.judge_claims.rules import NOT_REPRODUCED, REPRODUCED, WITHIN_NOISE, Rules


def explain(judged: Mapping[str, Any], rules: Rules) -> str:
    """Why an entry of claims.json has its verdict; numbers are shown as the paper prints them."""

    def show(number: float, *, signed: bool = False) -> str:
        factor, digits = (100.0, 1) if judged["percent"] else (1.0, 3)
        return f"{factor * number:{'+' if signed else ''}.{digits}f}"

    verdict, relation = judged["verdict"], judged["relation"]
    parts = [_reason(verdict, relation)]
    if relation == "value":
        mean, low, high = (show(judged["difference"][k], signed=True) for k in _LIMITS)
        tolerance = judged["tolerance"]
        allowed = "" if tolerance is None else f", tolerance {show(tolerance)}"
        parts.append(f"difference {mean} [{low}, {high}]{allowed}")
    if verdict == WITHIN_NOISE:
        detectable = show(judged["detectable"])
        parts.append(f"a difference of {detectable} is noticed in {100 * rules.power:.4g}% of runs")
        if (judged["needed"] or 0) > judged["observed"]["n"]:
            parts.append(f"showing a match takes about {judged['needed']} tasks")
    if judged["lost"]:
        tasks = "1 task was" if judged["lost"] == 1 else f"{judged['lost']} tasks were"
        parts.append(f"{tasks} lost to infrastructure errors")
    return "; ".join(parts)


_LIMITS = ("mean", "low", "high")


def _reason(verdict: str, relation: str) -> str:
    if relation == "value":
        return {
            REPRODUCED: "our interval lies inside the band around the paper's number",
            NOT_REPRODUCED: "further apart than chance and the tolerance explain",
            WITHIN_NOISE: "neither shown to lie inside the band around the paper's number, nor "
            "beyond what chance and the tolerance explain",
        }[verdict]
    other = "below" if relation == "above" else "above"
    return {
        REPRODUCED: f"our whole interval lies {relation} the number",
        NOT_REPRODUCED: f"our whole interval lies {other} the number",
        WITHIN_NOISE: "our interval holds the number",
    }[verdict]
