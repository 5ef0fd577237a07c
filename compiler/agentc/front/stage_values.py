"""What a stage sets: the draft that `bind_stage` fills, values that are coerced once for all rounds
and cells of a sweep, and the defaults that stages take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agentc.diagnostics.diagnostic import Span
from agentc.diagnostics.other_tools import advice_for_key
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import listed, nearest_first, offer, suggestions
from agentc.front.expand_repeat import Unrolled
from agentc.ir.module import Bodies, Body, Value
from agentc.kinds import Kind
from agentc.kinds.field import Field
from agentc.schema import language
from agentc.schema.coerce import Coercion, Failed
from agentc.schema.remedy import Several
from agentc.schema.structure import report_empty
from agentc.source.tree import Entry, Node, Scalar, Unknown
from agentc.syntax.nodes import RepeatDecl, Spec, StageDecl


@dataclass(slots=True)
class StageDraft:
    """What has been read of a stage so far; `whole` is False once anything is missing, `fixed`
    once anything depends on the round or on a param. `taken` are the defaults that it took."""

    unrolled: Unrolled
    kind: Kind
    spans: dict[str, Span] = field(default_factory=dict)
    defaulted: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    whole: bool = True
    fixed: bool = True

    def lacks_section(self, section: str, spec: Spec, sink: Sink) -> bool:
        """Whether a section that it needs could not be read, or is empty (reported then)."""
        if section in spec.empty:
            report_empty(section, spec.empty[section], sink)
        elif section not in spec.broken:
            return False
        self.whole = False
        return True

    def report(
        self,
        sink: Sink,
        code: str,
        message: str,
        span: Span,
        *,
        expected: str | None = None,
        fix: str | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        """An error of the stage, which it is not whole with."""
        self.whole = False
        sink.error(
            code,
            message,
            span,
            expected=expected,
            notes=notes,
            fix=fix,
            steps=self.unrolled.steps,
        )


# BoundValues: what stages set, coerced once for all rounds and cells of a sweep, so that stages
# which set the same hold the same values, and thereby have the same body. Filled by
# `bind_stage.py`.


@dataclass(frozen=True, slots=True)
class Coerced:
    """A node under the rules of a field: its value (None for one that is wrong, which has been
    reported), and the places of what is in it."""

    value: Value | None
    spans: Mapping[str, Span]


@dataclass(frozen=True, slots=True)
class BoundSettings:
    """A stage but for its inputs: its body, without a shape, the places of its settings, and the
    names under which it looked for defaults (`taken`)."""

    body: Body
    doc: str | None
    spans: Mapping[str, Span]
    taken: frozenset[str]


@dataclass(frozen=True, slots=True)
class BoundValues:
    """What is known of declarations, nodes and values, which are hashed by identity, and the bodies
    that were made of them."""

    settled: dict[StageDecl, BoundSettings] = field(default_factory=dict)
    bodies: Bodies = field(default_factory=Bodies)
    _coerced: dict[tuple[Node, Field], Coerced] = field(default_factory=dict)
    _values: dict[tuple[Span, str], Value] = field(default_factory=dict)
    _merged: dict[tuple[Value, Value], Value] = field(default_factory=dict)

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
        key = (node, declared)
        known = self._coerced.get(key)
        if known is None:
            coercion = Coercion(sink, steps, several=several)
            json = coercion.field(node, declared, name)
            value = None
            if not isinstance(json, Failed):
                # By its text: 1 and 1.0 are equal, and are written differently.
                value = self._values.setdefault((node.span, repr(json)), Value(json, node.span))
            known = self._coerced[key] = Coerced(value, coercion.spans)
        return known

    def merge(self, default: Value, own: Value) -> Value:
        """A group's default with what a stage sets of it."""
        key = (default, own)
        known = self._merged.get(key)
        if known is None:
            assert isinstance(default.json, dict)
            assert isinstance(own.json, dict)
            known = self._merged[key] = Value({**default.json, **own.json}, own.span)
        return known


# Defaults: the values under `defaults:` that stages take for keys which they do not set.


class Defaults:
    """Hands out defaults, and remembers which were taken."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._taken: set[str] = set()
        self._possible = _keys_of_stages(spec)
        self._lost = "defaults" in spec.broken
        self._meant = {
            name: Entry(entry.key, Unknown(entry.value.span))
            for entry, near in self._misspelt()
            for name in near
        }

    def __contains__(self, key: object) -> bool:
        """Whether `take` would give one."""
        return self._lost or key in self._spec.defaults or key in self._meant

    def take(self, key: str) -> Entry | None:
        """The default of a key, counted as taken; None when there is none. Where a misspelt one,
        which `report_unused` reports, may be meant, the value is unknown: no stage lacks it as
        well, and none is checked by it. So is every value where the section cannot be read."""
        entry = self._spec.defaults.get(key)
        if entry is not None:
            self._taken.add(key)
        if self._lost:
            return Entry(Scalar(key, False, self._spec.span), Unknown(self._spec.span))
        return entry or self._meant.get(key)

    def report_unused(self, sink: Sink) -> None:
        """Report every default that no stage took."""
        for key, entry in self._spec.defaults.items():
            if key in self._taken:
                continue
            if key in self._possible:
                message = f"every stage that has `{key}` sets it, so nothing takes this default"
                sink.unused("AGC406", message, entry.key.span, fix="remove it")
                continue
            fix = advice_for_key(key, self._possible) or offer(self._near(key))
            keys = listed(nearest_first(key, sorted(self._possible)), 60)
            sink.error(
                "AGC406",
                f"no stage of this spec has a key `{key}`",
                entry.key.span,
                expected=None if fix else f"one of {keys}",
                fix=fix,
            )

    def _misspelt(self) -> Iterator[tuple[Entry, tuple[str, ...]]]:
        for key, entry in self._spec.defaults.items():
            if key not in self._possible:
                yield entry, self._near(key)

    def _near(self, key: str) -> tuple[str, ...]:
        return suggestions(key, [*self._possible, *language.USE_KEYS])


def _keys_of_stages(spec: Spec) -> set[str]:
    """Keys that some stage of the spec has, set or not."""
    keys = {"placement"}
    for declared in [*spec.models.values(), *spec.stages.values()]:
        inner = declared.stages.values() if isinstance(declared, RepeatDecl) else [declared]
        for stage in inner:
            if isinstance(stage, StageDecl) and stage.kind is not None:
                keys |= {field.name for field in stage.kind.fields}
                keys |= set(stage.kind.uses)
    return keys
