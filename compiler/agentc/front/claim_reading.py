"""A claim as written, and what of the rest of the spec it is read beside.

Neighbours: `resolve_claims.py`, `claim_scores.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentc.backend_api import BackendTable
from agentc.backend_api.view import ABSENT, effective, find_setting
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.span import Span
from agentc.front.expand_repeat import Rounds
from agentc.front.expressions import Evaluator
from agentc.front.stage_references import ReferenceResolver
from agentc.ir.module import Resource, Stage
from agentc.kinds import Kind, kind_named
from agentc.kinds.artifacts import METRICS
from agentc.kinds.field import Json
from agentc.kinds.metric_names import Metric
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
