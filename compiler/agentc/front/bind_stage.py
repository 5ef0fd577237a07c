"""bind_stage: one unrolled stage of syntax becomes a stage of the IR. Part of `resolve_names`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from agentc.backend_api import BackendTable, StageBackend
from agentc.diagnostics.diagnostic import Origin
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed, nearest_first
from agentc.front.bind_algorithm import report_algorithm
from agentc.front.expand_repeat import Rounds, Unrolled, value_of_round
from agentc.front.expressions import Evaluator
from agentc.front.stage_references import InputResolver, advise_backend, advise_entry
from agentc.front.stage_values import BoundSettings, BoundValues, Defaults, StageDraft
from agentc.ir.module import ALGORITHM, Body, Resource, Stage, Value, algorithm_of
from agentc.kinds import Kind
from agentc.kinds.field import Field, Role, string
from agentc.schema import language
from agentc.schema.keys import Place, read_keys
from agentc.schema.remedy import Several
from agentc.source.tree import Entry, Node, Scalar, Unknown, described, items_of, text_of
from agentc.source.tree import Mapping as MappingNode
from agentc.syntax.nodes import Spec, StageDecl

_TEXT = string("backend", "")
_DOC = string("doc", "", nullable=True, identity="metadata")
_AUTO = "auto"


@dataclass(slots=True, kw_only=True)
class StageBinder:
    """Binds the stages of one spec, or of one cell of its matrix; `values` serves all cells."""

    spec: Spec
    rounds: Rounds
    meant: InputResolver
    defaults: Defaults
    table: BackendTable
    evaluator: Evaluator
    sink: Sink
    values: BoundValues
    environments: Mapping[str, Resource]
    _concerned: dict[StageDecl, tuple[Field, ...]] = field(default_factory=dict)

    def bind(self, unrolled: Unrolled) -> Stage | None:
        """The stage, or None when something of it is wrong (reported)."""
        declared = unrolled.declared
        if declared.kind is None:
            return None
        draft = StageDraft(unrolled, declared.kind, dict(declared.keys))
        settings = self._settings(draft)
        inputs = self._inputs(draft) | self._simulator_models(draft, settings.body.uses)
        if not draft.whole:
            return None
        return Stage(
            id=unrolled.id,
            body=self.values.bodies.shaped(settings.body, inputs),
            inputs=inputs,
            origin=Origin(declared.span, unrolled.steps),
            spans=draft.spans,
            doc=settings.doc,
            round=unrolled.round,
        )

    def _settings(self, draft: StageDraft) -> BoundSettings:
        """All of the stage but its inputs; read once for a stage that has no expressions."""
        declared = draft.unrolled.declared
        known = self.values.settled.get(declared)
        if known is not None:
            draft.spans.update(known.spans)
            for name in known.taken:
                self.defaults.take(name)
            return known
        backend = self._backend(draft)
        fields = self._fields(draft)
        self._check_algorithm(draft, backend, fields)
        options = self._options(draft, backend, algorithm_of(fields))
        uses, placement, doc = self._uses(draft), self._placement(draft), self._doc(draft)
        body = Body(
            kind=draft.kind.name,
            backend=backend or _AUTO,
            fields=fields,
            options=options,
            uses=uses,
            placement=placement,
            defaulted=frozenset(draft.defaulted),
            named=frozenset(uses.keys() & draft.spans.keys()),
        )
        body = self.values.bodies.of(body)
        found = BoundSettings(body, doc, dict(draft.spans), frozenset(draft.taken))
        if draft.whole and draft.fixed:
            self.values.settled[declared] = found
        return found

    def _backend(self, draft: StageDraft) -> str | None:
        node = draft.unrolled.declared.backend
        if node is None:
            return _AUTO
        value = self._value(draft, "backend", node, _TEXT)
        if not isinstance(value, Value):
            return None
        name = str(value.json)
        if name == _AUTO:
            return _AUTO
        kind = draft.kind.name
        found = self.table.find(name, kind)
        if found is not None:
            return found.id
        possible = [backend.id for backend in self.table.stage_backends(kind)]
        short = [name.removesuffix(f".{kind}").removeprefix(f"{kind}.") for name in possible]
        other = self.table.backends.get(name)
        missing = draft.kind.without.get(name.removesuffix(f".{kind}"))
        notes = [missing] if missing else []
        if other is not None:
            notes.append(f"{name} is there, but does other work")
        self.sink.error(
            "AGC601",
            f"no backend `{name}` for kind {kind}",
            node.span,
            expected=f"one of {listed(nearest_first(name, [*possible, _AUTO]))}",
            notes=tuple(notes),
            fix=advise_backend(name) or did_you_mean(name, [*possible, *short, _AUTO]),
            steps=draft.unrolled.steps,
        )
        draft.whole = False
        return None

    def _fields(self, draft: StageDraft) -> Mapping[str, Value]:
        values: dict[str, Value] = {}
        for declared in self._fields_of(draft.unrolled.declared, draft.kind):
            own = draft.unrolled.declared.fields.get(declared.name)
            value = self._field(draft, declared, own)
            if value is not None:
                values[declared.name] = value
            elif own is None and declared.required and declared.name not in self.defaults:
                self.sink.error(
                    "AGC202",
                    f"stage `{draft.unrolled.declared.name.text}` of kind {draft.kind.name} needs "
                    f"`{declared.name}`",
                    draft.unrolled.declared.span,
                    notes=(declared.doc,),
                    fix="give it here, or under `defaults:` for all stages",
                )
                draft.whole = False
        return values

    def _fields_of(self, declared: StageDecl, kind: Kind) -> tuple[Field, ...]:
        """The fields that have a value in a stage, in any round, or lack one that they need."""
        found = self._concerned.get(declared)
        if found is None:
            given = (declared.fields, self.defaults)
            found = self._concerned[declared] = tuple(
                each
                for each in kind.fields
                if each.required or any(each.name in names for names in given)
            )
        return found

    def _default(self, draft: StageDraft, name: str) -> Entry | None:
        draft.taken.add(name)
        return self.defaults.take(name)

    def _field(self, draft: StageDraft, declared: Field, own: Entry | None) -> Value | None:
        """The stage's value, the default's, or both merged where the field is a group."""
        name = declared.name
        default = None
        if (own is None or declared.fields) and (entry := self._default(draft, name)) is not None:
            draft.spans.setdefault(name, entry.key.span)
            default = self._value(draft, name, entry.value, declared)
        value = None if own is None else self._value(draft, name, own.value, declared)
        if default is None:
            return value
        if isinstance(default.json, dict):
            given = value.json if value is not None and isinstance(value.json, dict) else {}
            draft.defaulted |= {f"{name}.{key}" for key in default.json if key not in given}
            if value is not None and isinstance(value.json, dict):
                return self.values.merge(default, value)
        elif own is None:
            draft.defaulted.add(name)
        return default if own is None else value

    def _check_algorithm(
        self, draft: StageDraft, backend: str | None, fields: Mapping[str, Value]
    ) -> None:
        if not draft.kind.has(ALGORITHM) or backend is None:
            return
        named = self.table.backends.get(backend)
        draft.whole &= report_algorithm(
            draft.kind,
            named if isinstance(named, StageBackend) else None,
            algorithm_of(fields),
            stage=draft.unrolled.declared.name.text,
            spans=draft.spans,
            span=draft.unrolled.declared.span,
            table=self.table,
            sink=self.sink,
            steps=draft.unrolled.steps,
        )

    def _options(
        self, draft: StageDraft, backend: str | None, algorithm: str | None
    ) -> Mapping[str, Value]:
        entries = draft.unrolled.declared.options
        if not entries or backend is None:
            return {}
        kind = draft.kind.name
        candidates = [
            found
            for found in self.table.implementing(kind, algorithm)
            if backend in (found.id, _AUTO)
        ]
        fields: dict[str, Field] = {}
        for candidate in candidates:
            for each in candidate.options:
                fields.setdefault(each.name, each)
        place = Place(
            f"options of stage `{draft.unrolled.declared.name.text}`",
            f"`options` of stage `{draft.unrolled.declared.name.text}`"
            + (f" (backend {backend})" if backend != _AUTO else ""),
            draft.unrolled.steps,
        )
        given = MappingNode(tuple(entries.values()), draft.unrolled.declared.span)
        known = read_keys(given, fields, place, self.sink, self.table)
        draft.whole &= all(name in fields for name in entries)
        values: dict[str, Value] = {}
        for name, entry in known.items():
            draft.spans[f"options.{name}"] = entry.key.span
            value = self._value(draft, name, entry.value, fields[name], under="options.")
            if value is not None:
                values[name] = value
        return values

    def _placement(self, draft: StageDraft) -> Mapping[str, Value]:
        fields = {each.name: each for each in language.PLACEMENT_FIELDS}
        entries = dict(draft.unrolled.declared.placement)
        default = self._default(draft, "placement")
        if default is not None and isinstance(default.value, MappingNode):
            place = Place("defaults.placement", "`placement` of `defaults`")
            for name, entry in read_keys(default.value, fields, place, self.sink).items():
                if name not in entries:
                    entries[name] = entry
                    draft.defaulted.add(f"placement.{name}")
        values: dict[str, Value] = {}
        for name, entry in entries.items():
            draft.spans[f"placement.{name}"] = entry.key.span
            value = self._value(draft, name, entry.value, fields[name], under="placement.")
            if value is not None:
                values[name] = value
        return values

    def _doc(self, draft: StageDraft) -> str | None:
        node = draft.unrolled.declared.doc
        value = None if node is None else self._value(draft, "doc", node, _DOC)
        return value.json if value is not None and isinstance(value.json, str) else None

    def _inputs(self, draft: StageDraft) -> dict[str, tuple[str, ...]]:
        inputs: dict[str, tuple[str, ...]] = {}
        for role in draft.kind.roles:
            entry = draft.unrolled.declared.roles.get(role.name)
            if entry is not None:
                found = self._role(draft, role, entry.value)
                if found:
                    inputs[role.name] = found
            elif not role.optional:
                draft.whole = False  # structuring has reported it
        return inputs

    def _simulator_models(self, draft: StageDraft, uses: Mapping[str, str]) -> dict[str, Ids]:
        entry = self.environments.get(uses.get("environment", ""))
        return simulator_models(draft, entry, partial(self.meant.of, draft), self.sink)

    def _role(self, draft: StageDraft, role: Role, node: Node) -> tuple[str, ...]:
        selected = self._selected(draft, role.name, node)
        if selected is None:
            return ()
        ids: list[str] = []
        items, listed_items = items_of(selected)
        for item in items:
            for stage_id in self.meant.of(draft, role, item, draft.unrolled):
                draft.spans[f"{role.name}.{len(ids)}"] = item.span
                ids.append(stage_id)
        if not ids and (draft.whole or not items):
            self.meant.report_nothing(draft, role.name, selected)
        if role.many or not draft.whole:
            return tuple(ids)
        if len(ids) > 1 or listed_items:
            shown = listed(ids) if len(ids) > 1 else "a list"
            draft.report(
                self.sink,
                "AGC404",
                f"`{role.name}` takes one stage, not {shown}",
                selected.span,
                fix=f"write `{role.name}: {ids[0]}`" if len(ids) == 1 else None,
            )
        return tuple(ids)

    def _uses(self, draft: StageDraft) -> dict[str, str]:
        chosen: dict[str, str] = {}
        sections: dict[str, Mapping[str, object]] = {
            "environment": self.spec.environments,
            "server": self.spec.servers,
            "prompt": self.spec.prompts,
        }
        for use in draft.kind.uses:
            entries = sections[use]
            entry = draft.unrolled.declared.uses.get(use)
            if entry is None and (entry := self._default(draft, use)) is not None:
                draft.defaulted.add(use)
            if entry is None:
                if len(entries) == 1:
                    chosen[use] = next(iter(entries))
                elif entries or use != "prompt":
                    self._choose(draft, use, entries)
                continue
            draft.spans.setdefault(use, entry.key.span)
            node = self._selected(draft, use, entry.value)
            if node is None:
                continue
            name = text_of(node)
            if name in entries:
                chosen[use] = str(name)
                continue
            if not entries and draft.lacks_section(f"{use}s", self.spec, self.sink):
                continue
            expected = f"one of {listed(entries)}" if entries else f"an entry of `{use}s:`"
            draft.report(
                self.sink,
                "AGC402",
                f"no {use} `{name}`"
                if name is not None
                else f"`{use}` cannot be {described(node)}",
                node.span,
                expected=expected,
                fix=(None if name is None else did_you_mean(name, entries))
                or advise_entry(use, node, self.table),
            )
        return chosen

    def _choose(self, draft: StageDraft, use: str, entries: Mapping[str, object]) -> None:
        name = draft.unrolled.declared.name.text
        if draft.lacks_section(f"{use}s", self.spec, self.sink):
            return
        if entries:
            message = f"stage `{name}` has to say which {use} it uses"
            expected = f"`{use}:` with one of {listed(entries)}"
            fix = f"write `{use}: {next(iter(entries))}` here, or under `defaults:`"
        else:
            article = "an" if use[0] in "aeiou" else "a"
            message = f"stage `{name}` of kind {draft.kind.name} needs {article} {use}"
            expected = f"a section `{use}s:` with one entry at least"
            fix = None
        draft.whole = False
        self.sink.error("AGC403", message, draft.unrolled.declared.span, expected=expected, fix=fix)

    def _selected(self, draft: StageDraft, path: str, node: Node) -> Node | None:
        """The node of this round with its expressions computed; None when there is none."""
        unrolled = draft.unrolled
        count = self.rounds.counts.get(unrolled.repeat or "", 1)

        def choice(entry: Entry, path: str) -> Node | None:
            return value_of_round(entry, path, unrolled, count, self.evaluator, self.sink)

        computed = self.evaluator.evaluate(node, unrolled.scope, unrolled.steps, choice, path)
        if isinstance(computed, Unknown):
            draft.whole = False
            return None
        draft.fixed &= computed is node
        return computed

    def _value(
        self, draft: StageDraft, name: str, node: Node, declared: Field, under: str = ""
    ) -> Value | None:
        computed = self._selected(draft, name, node)
        if computed is None:
            return None
        steps = draft.unrolled.steps if computed is not node else ()
        several: Several = "sweep" if draft.unrolled.round is None else "rounds"
        known = self.values.coerce(computed, declared, name, self.sink, steps, several)
        for path, span in known.spans.items():
            draft.spans.setdefault(under + path, span)
        if known.value is None:
            draft.whole = False
        return known.value


# Inputs that a stage has because its environment asks model servers: their models.

Ids: TypeAlias = tuple[str, ...]
_Resolve: TypeAlias = Callable[[Role, Node, Unrolled], Sequence[str]]


def simulator_models(
    draft: StageDraft, entry: Resource | None, resolve: _Resolve, sink: Sink
) -> dict[str, Ids]:
    """The stage whose product each server serves, by its role. `resolve` reports what a name does
    not mean; stages of one entry share its places, so what is wrong is told once."""
    inputs: dict[str, Ids] = {}
    for name in () if entry is None else entry.simulators:
        assert entry is not None
        model, span = entry.simulator_model(name), entry.spans.get(f"{name}.model")
        if model is None or span is None:
            continue
        if sink.has_error_at(span):
            draft.whole = False
            continue
        role = Role(name=f"{name}.model", accepts=(), doc="")
        found = tuple(resolve(role, Scalar(model, True, span), draft.unrolled))
        draft.spans[name] = draft.spans[f"{name}.0"] = span
        if len(found) == 1:
            inputs[name] = found
        elif found:
            message = f"`{name}.model` takes one stage, not {listed(found)}"
            draft.report(sink, "AGC404", message, span)
        elif draft.whole:
            message = f"`{name}.model` is empty in this round: `{model}` carries nothing yet"
            draft.report(sink, "AGC205", message, span, fix="name a stage in `from`")
    return inputs
