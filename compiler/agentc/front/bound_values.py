"""BoundValues: what stages set, coerced and kept once for all rounds and cells of a sweep.

Stages that set the same hold the same objects, so that what comes later sees at once that their
values are equal and need not go through them again. Filled by `bind_stage.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.span import Span
from agentc.ir.module import Value
from agentc.kinds.field import Field
from agentc.schema.coerce import Coercion, Failed
from agentc.schema.remedy import Several
from agentc.source.tree import Node

_Identity: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Coerced:
    """A node under the rules of a field: its value (None for one that is wrong, which has been
    reported), and the places of what is in it. Holding the node keeps its id its own."""

    value: Value | None
    spans: Mapping[str, Span]
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A stage but for its inputs; `backend` is None for one that there is not, `taken` are the
    names under which it looked for defaults."""

    backend: str | None
    fields: Mapping[str, Value]
    options: Mapping[str, Value]
    uses: Mapping[str, str]
    placement: Mapping[str, Value]
    doc: str | None
    spans: Mapping[str, Span]
    defaulted: frozenset[str]
    taken: frozenset[str]


@dataclass(frozen=True, slots=True)
class BoundValues:
    """By the identity of syntax nodes and fields, which outlive the reading of a spec."""

    settled: dict[int, Settled] = field(default_factory=dict)
    _coerced: dict[_Identity, Coerced] = field(default_factory=dict)
    _merged: dict[_Identity, Value] = field(default_factory=dict)
    _tables: dict[tuple[tuple[str, int], ...], Mapping[str, Value]] = field(default_factory=dict)

    def coerce(
        self,
        node: Node,
        declared: Field,
        name: str,
        sink: Sink,
        steps: tuple[str, ...],
        several: Several | None = None,
    ) -> Coerced:
        """A node as the value of a field; what is wrong with it is reported the first time."""
        key = (id(node), id(declared))
        known = self._coerced.get(key)
        if known is None:
            coercion = Coercion(sink, steps, several=several)
            json = coercion.field(node, declared, name)
            value = None if isinstance(json, Failed) else Value(json, node.span)
            known = self._coerced[key] = Coerced(value, coercion.spans, node)
        return known

    def merge(self, default: Value, own: Value) -> Value:
        """A group's default with what a stage sets of it."""
        key = (id(default), id(own))
        known = self._merged.get(key)
        if known is None:
            assert isinstance(default.json, dict)
            assert isinstance(own.json, dict)
            known = self._merged[key] = Value({**default.json, **own.json}, own.span)
        return known

    def table(self, values: Mapping[str, Value]) -> Mapping[str, Value]:
        """These values by name, as the mapping that the first stage got which set the same."""
        key = tuple((name, id(value)) for name, value in values.items())
        return self._tables.setdefault(key, values)
