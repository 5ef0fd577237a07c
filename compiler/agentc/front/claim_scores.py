"""Which numbers a claim can make: the scores that its environment gives, and their differences.

A number that no policy could reach is a slip of the pen, most often points of a hundred without
`percent: true`. Neighbour: `resolve_claims.py`.
"""

from __future__ import annotations

from agentc.backend_api import EnvironmentBackend
from agentc.front.claim_reading import ClaimReading, WrittenClaim, number_of, setting_in_effect
from agentc.ir.claim import Relation
from agentc.ir.module import Stage
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.kinds.metric_names import read_metric

_SAME_TASKS = ("split", "limit")


def score_bounds(stage: str, metric: str, reading: ClaimReading) -> tuple[float, float] | None:
    """The lowest and the highest score of a task; None when the environment is not known."""
    bound = reading.stages.get(stage)
    if bound is None:
        return None
    entry = reading.environments.get(bound.uses.get("environment", ""))
    backend = None if entry is None else reading.table.backends.get(entry.backend)
    if entry is None or not isinstance(backend, EnvironmentBackend):
        return None
    named = read_metric(metric)
    if named.is_share:
        return (0.0, 1.0)
    if named.family == "revision_length":
        return _revision_lengths(bound, reading)
    return backend.under({name: value.json for name, value in entry.fields.items()}).reward_range


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
    elif one.uses.get("environment") != other.uses.get("environment"):
        reason = "they use different environments"
    else:
        kind = {name: (_set(one, name), _set(other, name)) for name in _SAME_TASKS}
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


def _set(stage: Stage, name: str) -> Json:
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
    low, high = (shown(bound * unit) for bound in bounds)
    paired = written.values.get("difference_from") is not None
    of_two = read_metric(str(written.values.get("metric", "reward"))).of_two
    what = "differences" if paired and not of_two else "scores"
    points = unit == 1.0 and bounds[0] <= number / 100 <= bounds[1]
    reading.sink.error(
        "AGC442",
        f"{shown(number)} lies outside the {what} that `{environment}` can give, {low} to {high}",
        written.at(relation),
        fix="add `percent: true` if the paper prints points of a hundred" if points else None,
    )


def shown(number: float) -> str:
    """A number for people."""
    return f"{number:.6g}"
