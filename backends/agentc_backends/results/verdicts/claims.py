"""Verdicts on claims. A paper's value is reproduced or not reproduced, a hypothesis supported or
contradicted; either is inconclusive where the data cannot tell. A sentence gives the reason.

Each but the last is given only where its own statement holds with the stated confidence; see
docs/claims.md for the rules, their error rates and their sources."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agentc_backends.agents.evaluate.protocols import protocol_warning
from agentc_backends.results.verdicts.curves import judge_curves
from agentc_backends.results.verdicts.rules import (
    CONTRADICTED,
    INCONCLUSIVE,
    NOT_JUDGED,
    NOT_REPRODUCED,
    REPRODUCED,
    SUPPORTED,
    Claim,
    VerdictRules,
    chance_to_reproduce,
    tolerance_needed,
)
from agentc_backends.statistics.intervals import ReportedMean, interval_of_difference
from agentc_backends.statistics.measurements import REVISION_SCORES, tasks_with_score
from agentc_backends.statistics.sample import Sample
from agentc_backends.statistics.scores import (
    WIN_RATE,
    Estimate,
    Metrics,
    Pooled,
    describe,
    describe_difference,
    describe_wins,
    holm,
    read_scores,
    read_wins,
)

UNMET = "other tasks"
"""Why a claim with conditions that do not hold is not judged; the conditions follow."""
OTHER_TASKS = "the evaluations were made on different tasks"
NO_SCORE = "no task has a score"


def judge_all(
    claims: Sequence[Claim], metrics: Mapping[str, Metrics], rules: VerdictRules, scale: str | None
) -> list[dict[str, Any]]:
    """The entries of claims.json. `metrics` are those of the stages that the claims name.

    Claims of a side that are held against one baseline are tests of one family: a verdict stands
    only if it does so for all of them together (Holm 1979).
    """
    judged = [judge(claim, metrics, rules) for claim in claims]
    families: dict[str, list[dict[str, Any]]] = {}
    for claim, entry in zip(claims, judged, strict=True):
        if claim.get("unmet") is not None:
            continue
        if entry["p_side"] is not None and claim["difference_from"] is not None:
            measured = f"{claim['metric']} {claim.get('difference_metric') or ''}"
            families.setdefault(f"{measured} {_baselines(claim)}", []).append(entry)
    for family in families.values():
        for entry, p in zip(family, holm([e["p_side"] for e in family]), strict=True):
            entry |= {"family": len(family), "p_holm": p}
            if p >= 1 - rules.confidence:
                entry["verdict"] = INCONCLUSIVE
    for claim, entry in zip(claims, judged, strict=True):
        if entry["because"] is None:
            apart = _protocols_apart(_runs(claim), metrics)
            entry["because"] = "; ".join(filter(None, (explain(entry, rules), apart)))
        if scale is not None and entry["observed"] is not None:
            entry["verdict"], entry["because"] = (
                NOT_JUDGED,
                f"nothing is judged at the reduced scale {scale}",
            )
        elif claim.get("unmet") is not None:
            because = f"{UNMET}: {claim['unmet']}"
            entry |= {"verdict": NOT_JUDGED, "because": because, "unmet": claim["unmet"]}
    return judged


def judge(claim: Claim, metrics: Mapping[str, Metrics], rules: VerdictRules) -> dict[str, Any]:
    """One entry of claims.json, by itself; without its reason, unless nothing can be judged."""
    record = {name: claim[name] for name in _TOLD}
    if claim.get("difference_metric") is not None:
        record["difference_metric"] = claim["difference_metric"]
    runs = [
        (metrics[stage], None if baseline is None else metrics[baseline])
        for stage, baseline in _runs(claim)
    ]
    if claim.get("reach") is not None:
        curves = judge_curves(claim, runs, rules.confidence)
        return {**record, "reach": claim["reach"], **_NOTHING, **curves, "lost": 0}
    others = len({frozenset(one["tasks"]) for run in runs for one in run if one is not None}) > 1
    if claim["metric"] in REVISION_SCORES:
        # Which tasks have revisions is a result of the search, so that these are those of both.
        theirs = claim.get("difference_metric") or claim["metric"]
        runs = [
            (
                tasks_with_score(one, claim["metric"]),
                None if other is None else tasks_with_score(other, theirs),
            )
            for one, other in runs
        ]
    elif others:
        return {**record, **_NOTHING, "because": OTHER_TASKS, "lost": 0}
    won = claim["metric"] == WIN_RATE
    if won:
        scores = read_wins(runs)
    else:
        scores = read_scores(runs, claim["metric"], claim.get("difference_metric"))
    if not scores.tasks:
        return {**record, **_NOTHING, "because": NO_SCORE, "lost": scores.lost}
    ours = scores.estimate((claim["bounds"][0], claim["bounds"][1]))
    side = claim["relation"] != "value"
    judged = _judge_side(claim, ours, rules) if side else _judge_value(claim, ours, rules)
    if won:
        observed = describe_wins(scores, ours, rules.confidence)
    elif scores.paired:
        observed = describe_difference(scores, ours, rules.confidence)
    else:
        observed = describe(ours, rules.confidence)
    return {**record, **_NOTHING, **judged, "observed": observed, "lost": scores.lost}


def _runs(claim: Claim) -> Sequence[tuple[str, str | None]]:
    """The evaluations that it is about, each with its baseline."""
    found: Sequence[tuple[str, str | None]] = claim.get("runs") or ()
    return found or [(claim["stage"], claim["difference_from"])]


def _protocols_apart(
    runs: Sequence[tuple[str, str | None]], metrics: Mapping[str, Metrics]
) -> str | None:
    """Where an evaluation and its baseline were played by different rules."""
    for stage, baseline in runs:
        if baseline is None:
            continue
        apart = protocol_warning((stage, metrics[stage]), (baseline, metrics[baseline]))
        if apart is not None:
            return apart
    return None


def _baselines(claim: Claim) -> str:
    return ", ".join(sorted({str(baseline) for _, baseline in _runs(claim)}))


_TOLD = (
    "name", "what", "table", "stage", "difference_from", "metric", "relation", "value",
    "tolerance", "n", "seeds", "percent", "gate",
)  # fmt: skip
_NOTHING: Mapping[str, Any] = {
    "verdict": NOT_JUDGED,
    "because": None,
    "paper": None,
    "band": None,
    "observed": None,
    "difference": None,
    "detectable": None,
    "needed": None,
    "chance": None,
    "tolerance_needed": None,
    "p_side": None,
    "p_holm": None,
    "family": 1,
}


def _judge_value(claim: Claim, ours: Estimate, rules: VerdictRules) -> dict[str, Any]:
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
        verdict = INCONCLUSIVE
    noise = math.hypot(ours.standard_error(), paper.standard_error())
    needed = None
    half = (band[1] - band[0]) / 2
    if isinstance(ours, Sample):
        needed = math.ceil((rules.reach_inside() * ours.standard_error() / half) ** 2 * ours.n)
    return {
        "verdict": verdict,
        "paper": _described_paper(paper, rules.confidence),
        "band": list(band),
        "difference": {"mean": ours.mean - claim["value"], "low": apart[0], "high": apart[1]},
        "detectable": margin + rules.reach(ours.freedom) * noise,
        "needed": needed,
        "chance": chance_to_reproduce(ours, paper, half, rules),
        "tolerance_needed": tolerance_needed(ours, paper, rules),
    }


def _described_paper(paper: ReportedMean | Pooled, confidence: float) -> dict[str, Any]:
    low, high = paper.interval(confidence)
    known = {"mean": paper.mean, "low": low, "high": high, "n": paper.n, "method": paper.method}
    return {**known, "runs": paper.runs} if isinstance(paper, Pooled) else known


def _judge_side(claim: Claim, ours: Estimate, rules: VerdictRules) -> dict[str, Any]:
    """Above or below a number: the whole interval must lie on one side of it."""
    low, high = ours.interval(rules.confidence)
    side, value = claim["relation"], claim["value"]
    if side == "below":
        holds, fails = high < value, low > value
    else:
        holds, fails = low > value, high < value
    verdict = SUPPORTED if holds else CONTRADICTED if fails else INCONCLUSIVE
    return {
        "verdict": verdict,
        "difference": {"mean": ours.mean - value, "low": low - value, "high": high - value},
        "detectable": rules.reach(ours.freedom) * ours.standard_error(),
        "p_side": ours.p_value(value),
    }


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
    if verdict == INCONCLUSIVE:
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
            REPRODUCED: "the 95% CI is inside the band around the paper's number",
            NOT_REPRODUCED: "further apart than chance and the tolerance explain",
            INCONCLUSIVE: "neither shown to lie inside the band around the paper's number, nor "
            "beyond what chance and the tolerance explain",
        }[verdict]
    other = "below" if relation == "above" else "above"
    low, high = (judged["difference"][k] for k in ("low", "high"))
    if verdict == INCONCLUSIVE:
        if not low <= 0 <= high:
            return (
                "the 95% CI excludes the claimed value, but not after adjustment for the other "
                "claims"
            )
        return "the 95% CI includes the claimed value"
    side = relation if verdict == SUPPORTED else other
    return f"the entire 95% CI is {side} the claimed value"
