"""Claims about the curves of runs of RL: how much was played until a return was reached.

They have keys of their own (`reach`, `ratio_to`) and say a side only: a printed number of
trajectories has no noise that a result could be held against. Neighbour: `resolve_claims.py`.
"""

from __future__ import annotations

import math

from agentc.diagnostics.sink import Sink
from agentc.front.claim_reading import (
    ClaimReading,
    WrittenClaim,
    number_of,
    setting_in_effect,
)
from agentc.front.claim_scores import SAME_TASKS, given, same_world, shown
from agentc.ir.module import Stage
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.kinds.metric_names import read_metric

COUNTS = (0.0, math.inf)
"""What can be counted, and the ratios of it."""


def is_of_curves(written: WrittenClaim, metric: str, sink: Sink) -> bool:
    """Whether a claim has the keys that its metric takes: of a curve `reach`, a side and perhaps
    `ratio_to`, of anything else none of these."""
    values = written.values
    if not read_metric(metric).of_curve:
        extra = next((key for key in ("reach", "ratio_to") if values.get(key) is not None), None)
        if extra is None:
            return True
        told = f"`{extra}` means nothing beside `metric: {metric}`"
        fix = "leave it out, or write `metric: trajectories_to` of a run of RL"
        return _refused(sink, written, extra, told, fix)
    if values.get("reach") is None:
        fix = "write the return that is to be reached, such as `reach: -17`"
        return _refused(sink, written, "metric", f"`{metric}` needs `reach`", fix)
    refusals = {
        "difference_from": "name the other run as `ratio_to`: the claim is about a share of it",
        "value": "claim that it lies `below` or `above` a number: a printed one has no interval",
    }
    for key, fix in refusals.items():
        if values.get(key) is not None:
            told = f"`{key}` means nothing beside `metric: {metric}`"
            return _refused(sink, written, key, told, fix)
    side = next((key for key in ("above", "below") if values.get(key) is not None), None)
    if side is not None and number_of(values[side]) < 0:
        sink.error(
            "AGC442",
            "nothing that is counted is below 0",
            written.at(side),
            fix="write how many, or which share",
        )
        return False
    if values.get("percent") is True:
        told = f"`percent` means nothing beside `metric: {metric}`"
        return _refused(sink, written, "percent", told, "write a ratio as it is: 0.01")
    return True


def are_alike(
    written: WrittenClaim,
    stage: str,
    baseline: str | None,
    rewards: tuple[float, float],
    reading: ClaimReading,
) -> bool:
    """Whether the return can be reached and both runs played the same, as far as the spec says."""
    reach = number_of(written.values["reach"])
    one, other = reading.stages.get(stage), reading.stages.get(baseline or "")
    if one is None or (baseline is not None and other is None):
        return False
    if not rewards[0] <= reach <= rewards[1]:
        low, high = map(shown, rewards)
        world = one.uses["environment"]
        reading.sink.error(
            "AGC442",
            f"no return is {shown(reach)}: `{world}` gives {low} to {high}",
            written.at("reach"),
            fix="write a return that a run can reach",
        )
        return False
    if other is None:
        return True
    if stage == baseline:
        reason = "they are the same stage"
    elif not same_world(one, other, reading):
        reason = "they play different environments"
    elif differing := [name for name in SAME_TASKS if given(one, name) != given(other, name)]:
        reason = f"`{differing[0]}` is not the same in both"
    elif (_evaluated(one) is None) != (_evaluated(other) is None):
        reason = "one has evaluations on its curve, the other the episodes that it trained on"
    elif _evaluated(one) != _evaluated(other):
        reason = "`evaluate` is not the same in both"
    else:
        return True
    reading.sink.error(
        "AGC444",
        f"the curves of `{stage}` and `{baseline}` cannot be compared: {reason}",
        written.at("ratio_to"),
        expected="two runs of RL on the same tasks, evaluated alike",
    )
    return False


def _refused(sink: Sink, written: WrittenClaim, key: str, told: str, fix: str) -> bool:
    sink.error("AGC441", told, written.at(key), fix=fix)
    return False


def _evaluated(stage: Stage) -> Json:
    """How a run evaluates its policy on the way; None where it does not."""
    kind = kind_named(stage.kind)
    return None if kind is None else setting_in_effect(kind, stage, "evaluate")
