"""The reason for a verdict, in a sentence: what terminal and report show below the numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from agentc_backends.results.judge.rules import (
    NOT_REPRODUCED,
    REPRODUCED,
    WITHIN_NOISE,
    VerdictRules,
)


def explain(judged: Mapping[str, Any], rules: VerdictRules) -> str:
    """Why an entry of claims.json has its verdict; numbers are shown as the paper prints them."""

    factor, digits = (100.0, 1) if judged["percent"] else (1.0, 3)

    def show(number: float, *, signed: bool = False) -> str:
        return f"{factor * number:{'+' if signed else ''}.{digits}f}"

    verdict, relation = judged["verdict"], judged["relation"]
    parts = [_reason(judged)]
    if relation == "value":
        mean, low, high = (show(judged["difference"][k], signed=True) for k in _LIMITS)
        tolerance = judged["tolerance"]
        allowed = "" if tolerance is None else f", tolerance {show(tolerance)}"
        parts.append(f"difference {mean} [{low}, {high}]{allowed}")
    if judged["family"] > 1:
        parts.append(
            f"p {judged['p_holm']:.2g} after Holm's correction for {judged['family']} claims "
            "against this baseline"
        )
    if verdict == WITHIN_NOISE:
        detectable, tasks = show(judged["detectable"]), _tasks(judged["observed"])
        parts.append(
            f"with {tasks} only differences above {detectable} are found reliably "
            f"({_percent(rules.power)} power)"
        )
        if (judged["needed"] or 0) > judged["observed"]["n"]:
            parts.append(f"showing a match takes about {judged['needed']} tasks")
    if relation == "value":
        called = f"a perfect reproduction is called reproduced in {_percent(judged['chance'])}"
        if judged["chance"] < rules.power:
            wanted = math.ceil(factor * judged["tolerance_needed"] * 10**digits) / 10**digits
            called += f" of runs, with `tolerance: {wanted:g}` in {_percent(rules.power)}"
        else:
            called += " of runs"
        parts.append(called)
    if judged["observed"].get("few"):
        parts.append(
            f"few tasks moved: {judged['observed']['better']} better, "
            f"{judged['observed']['worse']} worse, {judged['observed']['equal']} equal"
        )
    if other := judged["observed"].get("if_unseen"):
        low, high = (show(other[end], signed=True) for end in ("low", "high"))
        parts.append(
            f"no task moved by more than {show(other['furthest'])}: if rare ones that were not "
            f"seen move as far as the range lets them, the interval is [{low}, {high}]"
        )
    if judged["observed"].get("runs") == 2:
        parts.append("two runs say little of how runs differ")
    if judged["lost"]:
        tasks = "1 task was" if judged["lost"] == 1 else f"{judged['lost']} tasks were"
        parts.append(f"{tasks} lost to infrastructure errors")
    return "; ".join(parts)


_LIMITS = ("mean", "low", "high")


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _tasks(observed: Mapping[str, Any]) -> str:
    runs = observed.get("runs", 1)
    tasks = "1 task" if observed["n"] == 1 else f"{observed['n']} tasks"
    return tasks + (f" in {runs} runs" if runs > 1 else "")


def _reason(judged: Mapping[str, Any]) -> str:
    verdict, relation = judged["verdict"], judged["relation"]
    if relation == "value":
        return {
            REPRODUCED: "our interval lies inside the band around the paper's number",
            NOT_REPRODUCED: "further apart than chance and the tolerance explain",
            WITHIN_NOISE: "neither shown to lie inside the band around the paper's number, nor "
            "beyond what chance and the tolerance explain",
        }[verdict]
    other = "below" if relation == "above" else "above"
    low, high = (judged["difference"][k] for k in ("low", "high"))
    if verdict == WITHIN_NOISE:
        if not low <= 0 <= high:
            return "our interval leaves the number out, but not with the other claims in view"
        return "our interval holds the number"
    side = relation if verdict == REPRODUCED else other
    return f"our whole interval lies {side} the number"
