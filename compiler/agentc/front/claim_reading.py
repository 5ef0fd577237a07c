"""A claim as written, what of the rest of the spec it is read with, and the settings that it needs
(`needs:`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentc.backend_api import BackendTable, EnvironmentBackend
from agentc.backend_api.view import ABSENT, effective, find_setting
from agentc.diagnostics.diagnostic import Span
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.front.expand_repeat import Rounds
from agentc.front.expressions import Evaluator
from agentc.front.stage_references import ReferenceResolver
from agentc.ir.module import Resource, Stage
from agentc.kinds import Kind, kind_named
from agentc.kinds.artifacts import METRICS
from agentc.kinds.field import Json
from agentc.kinds.metric_names import Metric
from agentc.schema.coerce import FAILED, Coercion, Failed
from agentc.source.tree import Entry, Node
from agentc.source.tree import Mapping as MappingNode


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimReading:
    """What reading claims needs to know of the rest of the spec; `stages` are those that could be
    bound."""

    rounds: Rounds
    references: ReferenceResolver
    stages: Mapping[str, Stage]
    environments: Mapping[str, Resource]
    table: BackendTable
    params: Mapping[str, Json]
    evaluator: Evaluator
    sink: Sink


@dataclass(frozen=True, slots=True)
class WrittenClaim:
    """A claim as coerced; `span` is its name's."""

    name: str
    values: Mapping[str, Json]
    node: MappingNode
    span: Span

    def at(self, key: str) -> Span:
        """The place of a value."""
        entry = self.node.find(key)
        return self.span if entry is None else entry.value.span


def setting_in_effect(kind: Kind, stage: Stage | None, name: str) -> Json:
    """A setting of a stage, or what its kind has for it."""
    given = None if stage is None else stage.fields.get(name)
    if given is not None:
        return given.json
    setting = find_setting(kind.fields, name)
    return None if setting is None else effective(setting, lambda _: ABSENT)


def lacking(stage: Stage, metric: Metric) -> str | None:
    """What a stage would have to set so that it measures a metric by itself, as `Metric.missing`
    says it: None where it does, and "" where no setting of it would do."""
    kind = kind_named(stage.kind)
    if kind is not None and kind.products:
        kind = kind.of_stage(stage.inputs, setting_in_effect(kind, stage, kind.product_setting))
    if kind is None or kind.produces is not METRICS:
        return ""
    if metric.of_two or metric.of_curve or metric.of_revisions:
        return ""
    return metric.missing(kind, lambda name: setting_in_effect(kind, stage, name))


def number_of(value: Json) -> float:
    """A number that the claim's fields have checked."""
    assert isinstance(value, (int, float))
    return float(value)


# What a claim needs of its experiment (`needs:`): settings without which the paper's number is of
# something else, such as the published tasks. Where they differ the claim is compiled, and the
# verdicts stage shows the numbers without a verdict.

_OTHER = "not"
"""`{not: VALUE}`: any value but this one."""
_SETTING, _PARAM = "environment.", "params."


@dataclass(frozen=True, slots=True)
class _Condition:
    """What a condition may be about: a value in effect as messages call it, with the schema of
    such values."""

    name: str
    value: Json
    schema: Mapping[str, Json]


def unmet_needs(written: WrittenClaim, stage: str, reading: ClaimReading) -> str | None:
    """Which conditions of a claim do not hold, in words; None where all do. Conditions that are
    wrong are reported."""
    entry = written.node.find("needs")
    possible = _conditions(stage, reading)
    if entry is None or possible is None or not isinstance(entry.value, MappingNode):
        return None
    found = (_unmet(each, possible, reading) for each in entry.value.entries)
    return "; ".join(text for text in found if text) or None


def _conditions(stage: str, reading: ClaimReading) -> dict[str, _Condition] | None:
    """All that a claim about a stage can need, by the key that it is written with; None where
    something is wrong with the stage or its environment, which has been reported."""
    bound = reading.stages.get(stage)
    if bound is None:
        return None
    found = {
        f"{_PARAM}{name}": _Condition(f"the param `{name}`", value, {})
        for name, value in reading.params.items()
    }
    used = bound.uses.get("environment")
    if used is None:
        return found
    entry = reading.environments.get(used)
    backend = None if entry is None else reading.table.backends.get(entry.backend)
    if entry is None or not isinstance(backend, EnvironmentBackend):
        return None
    for field in backend.fields:
        setting, given = find_setting(backend.fields, field.name), entry.fields.get(field.name)
        assert setting is not None
        value = effective(setting, lambda _: ABSENT) if given is None else given.json
        name = f"`{field.name}` of `{used}`"
        found[f"{_SETTING}{field.name}"] = _Condition(name, value, field.schema)
    return found


def _unmet(entry: Entry, possible: Mapping[str, _Condition], reading: ClaimReading) -> str | None:
    """Why one condition does not hold, or None."""
    key = entry.key.text
    condition = possible.get(key)
    if condition is None:
        names = sorted(possible)
        bare = did_you_mean(f"{_SETTING}{key}", names) or did_you_mean(f"{_PARAM}{key}", names)
        reading.sink.error(
            "AGC450",
            f"`{key}` is nothing that a claim can need",
            entry.key.span,
            expected=f"one of {listed(names)}" if names else "a param of the spec",
            fix=did_you_mean(key, names) or bare,
        )
        return None
    wanted, other = _wanted(key, entry.value, condition, reading)
    if isinstance(wanted, Failed) or (condition.value == wanted) != other:
        return None
    needed = "another value" if other else _value_text(wanted)
    return f"{condition.name} is {_value_text(condition.value)}, and the claim needs {needed}"


def _wanted(
    key: str, node: Node, condition: _Condition, reading: ClaimReading
) -> tuple[Json | Failed, bool]:
    """The value of a condition, and whether it is to be any other one."""
    coercion = Coercion(reading.sink)
    if not isinstance(node, MappingNode):
        return coercion.value(node, condition.schema, key), False
    for entry in node.entries:
        if entry.key.text == _OTHER and len(node.entries) == 1:
            return coercion.value(entry.value, condition.schema, key), True
        if entry.key.text != _OTHER:
            reading.sink.error(
                "AGC450",
                f"`{key}` of `needs` takes a value, not `{entry.key.text}`",
                entry.key.span,
                expected=f"a value, or `{{{_OTHER}: VALUE}}`",
                fix=did_you_mean(entry.key.text, [_OTHER]),
            )
            return FAILED, False
    return coercion.value(node, condition.schema, key), False


def _value_text(value: Json) -> str:
    return "not set" if value is None else f"`{value}`"
