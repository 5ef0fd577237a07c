"""Which numbers a claim can make: the scores that its environment gives, and their differences.

A number that no policy could reach is a slip of the pen, most often points of a hundred without
`percent: true`.
"""

from __future__ import annotations

import math

from agentc.backend_api import EnvironmentBackend
from agentc.diagnostics.sink import Sink
from agentc.front.claim_reading import ClaimReading, WrittenClaim, number_of, setting_in_effect
from agentc.ir.claim import Relation
from agentc.ir.module import Stage
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.kinds.metric_names import read_metric

SAME_TASKS = ("split", "limit")
"""Settings that say, with the environment, which tasks a stage plays."""


def score_bounds(stage: str, metric: str, reading: ClaimReading) -> tuple[float, float] | None:
    """The lowest and the highest score of a task; None when the environment is not known."""
    bound = reading.stages.get(stage)
    if bound is None:
        return None
    named = read_metric(metric)
    declared = _environment(bound, reading)
    if declared is None:
        return _declared_range(bound, named.is_share)
    if named.is_share:
        return (0.0, 1.0)
    if named.family == "revision_length":
        return _revision_lengths(bound, reading)
    return declared.reward_range


def _declared_range(stage: Stage, is_share: bool) -> tuple[float, float] | None:
    """The scores of a stage that says by itself what it makes, and in which range; else None."""
    kind = kind_named(stage.kind)
    if kind is None or not kind.has("range"):
        return None
    told = setting_in_effect(kind, stage, "range")
    if is_share or not isinstance(told, list):
        return (0.0, 1.0)
    return number_of(told[0]), number_of(told[1])


def has_reward_name(
    written: WrittenClaim, key: str, stage: str, metric: str, reading: ClaimReading
) -> bool:
    """Whether the environment calls its reward as the claim does, where that has a name."""
    name, bound = read_metric(metric).reward_name, reading.stages.get(stage)
    if name is None or bound is None:
        return True
    declared = _environment(bound, reading)
    if declared is None or declared.reward_name == name:
        return True
    entry, own = bound.uses["environment"], declared.reward_name
    ways = [f"claim `{own or 'reward'}`, which is another number"]
    if name in declared.other_rewards:
        ways.append(f"write `{declared.other_rewards[name]}` in the environment `{entry}`")
    reading.sink.error(
        "AGC447",
        f"`{stage}` does not measure `{metric}`: the reward of `{entry}` "
        + (f"is `{own}`" if own else "has no such name"),
        written.at(key),
        expected=f"`{own}`, or `reward`" if own else "`reward`",
        fix="; or ".join(ways),
    )
    return False


def _environment(stage: Stage, reading: ClaimReading) -> EnvironmentBackend | None:
    """What a stage's environment declares under its settings."""
    entry = reading.environments.get(stage.uses.get("environment", ""))
    backend = None if entry is None else reading.table.backends.get(entry.backend)
    if entry is None or not isinstance(backend, EnvironmentBackend):
        return None
    return backend.of_entry(entry)


def _revision_lengths(revise: Stage, reading: ClaimReading) -> tuple[float, float]:
    """No path of a tree has more actions than its depth and one."""
    longest = 1
    for name in revise.inputs.get("trees", ()):
        search = reading.stages.get(name)
        kind = None if search is None else kind_named(search.kind)
        if search is not None and kind is not None:
            longest = max(longest, int(number_of(setting_in_effect(kind, search, "depth"))) + 1)
    return (1.0, float(longest))


def is_comparable(
    written: WrittenClaim,
    measured: tuple[str, str],
    against: tuple[str, str],
    reading: ClaimReading,
) -> bool:
    """Whether both stages are on the same tasks, as far as the spec says."""
    (stage, metric), (baseline, other_metric) = measured, against
    one, other = reading.stages.get(stage), reading.stages.get(baseline)
    if one is None or other is None or (stage == baseline and metric != other_metric):
        return True
    differing: list[str] = []
    if stage == baseline:
        reason = "they are the same stage"
    elif not same_world(one, other, reading):
        reason = "they use different environments"
    else:
        kind = {name: (setting_value(one, name), setting_value(other, name)) for name in SAME_TASKS}
        differing = [name for name, (left, right) in kind.items() if left != right]
        if not differing:
            return True
        left, right = kind[differing[0]]
        reason = f"`{differing[0]}` is {_json(left)} in one and {_json(right)} in the other"
    reading.sink.error(
        "AGC444",
        f"`{stage}` and `{baseline}` cannot be paired by task: {reason}"
        if stage != baseline
        else f"`{stage}` cannot be compared with itself",
        written.at("difference_from"),
        expected="two evaluations of the same tasks",
        rests_on=[each.spans[name] for each in (one, other) for name in differing
                  if name in each.spans],
    )  # fmt: skip
    return False


def same_world(one: Stage, other: Stage, reading: ClaimReading) -> bool:
    """Whether their environments are the same entry, or two that have the same tasks."""
    first, second = (each.uses.get("environment", "") for each in (one, other))
    if first == second:
        return True
    ours, theirs = reading.environments.get(first), reading.environments.get(second)
    if ours is None or theirs is None or ours.backend != theirs.backend:
        return False
    declared = _environment(one, reading)
    names = () if declared is None else declared.task_settings
    known = [{n: v.json for n, v in each.fields.items() if n in names} for each in (ours, theirs)]
    return bool(names) and known[0] == known[1]


def setting_value(stage: Stage, name: str) -> Json:
    """A setting as the spec has it; None where it says nothing."""
    value = stage.fields.get(name)
    return None if value is None else value.json


def _json(value: Json) -> str:
    return "not set" if value is None else f"`{value}`"


def report_range(
    written: WrittenClaim,
    relation: Relation,
    bounds: tuple[float, float],
    unit: float,
    stage: str,
    reading: ClaimReading,
) -> None:
    """Say that a claim's number is none that the environment gives."""
    number = number_of(written.values[relation])
    environment = reading.stages[stage].uses["environment"]
    low, high = (score_text(bound * unit) for bound in bounds)
    paired = written.values.get("difference_from") is not None
    of_two = read_metric(str(written.values.get("metric", "reward"))).of_two
    what = "differences" if paired and not of_two else "scores"
    points = unit == 1.0 and bounds[0] <= number / 100 <= bounds[1]
    reading.sink.error(
        "AGC442",
        f"{score_text(number)} lies outside the {what} that `{environment}` can give, "
        f"{low} to {high}",
        written.at(relation),
        fix="add `percent: true` if the paper prints points of a hundred" if points else None,
    )


def score_text(number: float) -> str:
    """A number for people."""
    return f"{number:.6g}"


# Claims about the curves of runs of RL: how much was played until a return was reached.
#
# They have keys of their own (`reach`, `ratio_to`) and say a side only: a printed number of
# trajectories has no noise that a result could be held against.

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


def is_comparable_curve(
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
        low, high = map(score_text, rewards)
        world = one.uses["environment"]
        reading.sink.error(
            "AGC442",
            f"no return is {score_text(reach)}: `{world}` gives {low} to {high}",
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
    elif differing := [
        name for name in SAME_TASKS if setting_value(one, name) != setting_value(other, name)
    ]:
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
