"""Environments, servers, prompts and descriptive entries of the IR. Part of `resolve_names`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from agentc.backend_api import BackendTable, EnvironmentBackend, ServerBackend, entry_fields
from agentc.diagnostics.diagnostic import Origin, Span
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed, nearest_first
from agentc.front.expressions import Evaluator
from agentc.ir.module import Prompt, Resource, Value
from agentc.kinds.field import Field, Json, string
from agentc.kinds.interaction import OBSERVATION_PREFIX
from agentc.schema import language
from agentc.schema.coerce import Coercion, Failed
from agentc.schema.describe import types_of
from agentc.schema.keys import Place, as_mapping, resolve_keys
from agentc.source.tree import Computed, Node, Scalar, Unknown, described
from agentc.source.tree import Sequence as SequenceNode
from agentc.syntax.nodes import ResourceDecl, Spec

_BACKEND = string("backend", "")
_FAMILIES: dict[str, str] = {"environment": "env", "server": "serve"}


def resolve_resources(
    what: Literal["environment", "server"],
    spec: Spec,
    params: Mapping[str, Json],
    table: BackendTable,
    evaluator: Evaluator,
    sink: Sink,
) -> dict[str, Resource]:
    """The entries of `environments:` or `servers:` whose backend and settings are right."""
    declared = spec.environments if what == "environment" else spec.servers
    resources: dict[str, Resource] = {}
    for name, entry in declared.items():
        backend = _backend(what, entry, params, table, evaluator, sink)
        if backend is None:
            continue
        settings = _entry_settings(what, name, entry, backend, params, table, evaluator, sink)
        resource = _resource(name, entry, backend, settings, sink)
        if resource is not None:
            resources[name] = resource
    return resources


@dataclass(frozen=True, slots=True)
class _EntrySettings:
    """The settings of an entry: `fields` are all that it can have, `keys` and `nodes` those that it
    has, `guessed` those that a misspelt key may mean. `whole`: every key is one of them."""

    what: str
    fields: Mapping[str, Field]
    sharing: frozenset[str]
    keys: Mapping[str, Scalar]
    nodes: Mapping[str, Node]
    guessed: Mapping[str, Scalar]
    whole: bool


def _entry_settings(
    what: Literal["environment", "server"],
    name: str,
    entry: ResourceDecl,
    backend: EnvironmentBackend | ServerBackend,
    params: Mapping[str, Json],
    table: BackendTable,
    evaluator: Evaluator,
    sink: Sink,
) -> _EntrySettings:
    """Reports keys that the backend does not have."""
    place = Place(f"{what}s.{name}", f"{what} `{name}` (backend {backend.id})")
    own = {each.name for each in backend.fields}
    beside = [each for each in language.SHARING_FIELDS if each.name not in own]
    fields = {each.name: each for each in (*entry_fields(backend), *beside)}
    keys_given, computed = _written(entry, params, evaluator, sink)
    nulls = [key for key, node in computed.items() if _is_null(node)]
    section = table.resources(what) if nulls else ()
    away = taken_away(nulls, fields, section)
    given = [key for key in keys_given if key.text not in away]
    # What null takes away is no key of this backend, but of another one.
    others = {each.name for every in section for each in every.fields}
    more = dict.fromkeys(nulls, others)
    required = [each.name for each in fields.values() if each.required]
    known = resolve_keys(given, entry.span, fields, place, sink, table, more, required)
    keys = {name: key for name, key in known.right.items() if name not in known.guessed}
    return _EntrySettings(
        what=place.what,
        fields=fields,
        sharing=frozenset(each.name for each in beside),
        keys=keys,
        nodes={name: computed[key.text] for name, key in keys.items()},
        guessed=known.guessed,
        whole=len(keys) == len(given),
    )


def _written(
    entry: ResourceDecl, params: Mapping[str, Json], evaluator: Evaluator, sink: Sink
) -> tuple[list[Scalar], dict[str, Node]]:
    """The keys of an entry's settings, and their values with expressions computed; its `doc` is
    checked and left out."""
    keys: list[Scalar] = []
    nodes: dict[str, Node] = {}
    for each in entry.settings.entries:
        if each is entry.backend:
            continue
        if each.key.text == language.DOC.name:
            resolve_text(each.value, language.DOC, params, evaluator, sink)
        else:
            keys.append(each.key)
            nodes[each.key.text] = evaluator.evaluate(each.value, params)
    return keys, nodes


def _resource(
    name: str,
    entry: ResourceDecl,
    backend: EnvironmentBackend | ServerBackend,
    settings: _EntrySettings,
    sink: Sink,
) -> Resource | None:
    """The entry with its values; None where one is wrong or missing (reported)."""
    own = {each.name for each in backend.fields}
    whole = settings.whole
    values: dict[str, Value] = {}
    placed: dict[str, Value] = {}
    asked: dict[str, Value] = {}
    spans: dict[str, Span] = {}
    if entry.backend is not None:
        spans["backend"] = entry.backend.value.span
    for each in settings.fields.values():
        if each.name not in settings.keys:
            if each.required and each.name not in settings.guessed:
                missing = f"{settings.what} needs `{each.name}`"
                sink.error("AGC202", missing, entry.span, notes=(each.doc,))
                whole = False
            continue
        node = settings.nodes[each.name]
        spans[each.name] = settings.keys[each.name].span
        coercion = Coercion(sink)
        value = coercion.field(node, each, each.name)
        spans.update(coercion.spans)
        if isinstance(value, Failed):
            whole = False
        elif each.name in settings.sharing:
            placed[each.name] = Value(value, node.span)
        elif each.name in own:
            values[each.name] = Value(value, node.span)
        elif value is not None:
            asked[each.name] = Value(value, node.span)
    if not whole:
        return None
    return Resource(
        name=name,
        backend=backend.id,
        fields=values,
        options={},
        origin=Origin(entry.span),
        spans=spans,
        sharing=placed,
        simulators=asked,
    )


def _is_null(node: Node) -> bool:
    if isinstance(node, Computed):
        return node.json is None
    return isinstance(node, Scalar) and not node.quoted and node.text == "null"


def _backend(
    what: Literal["environment", "server"],
    entry: ResourceDecl,
    params: Mapping[str, Json],
    table: BackendTable,
    evaluator: Evaluator,
    sink: Sink,
) -> EnvironmentBackend | ServerBackend | None:
    if entry.backend is None:
        return None
    node = evaluator.evaluate(entry.backend.value, params)
    name = Coercion(sink).field(node, _BACKEND, "backend")
    if not isinstance(name, str):
        return None
    family = _FAMILIES[what]
    backend = table.find(name, family)
    if isinstance(backend, (EnvironmentBackend, ServerBackend)):
        return backend
    possible = [each.id for each in table.resources(what)]
    short = [each.removeprefix(f"{family}.") for each in possible]
    known = listed(nearest_first(name, possible))
    sink.error(
        "AGC601",
        f"no {what} backend `{name}`",
        node.span,
        expected=f"one of {known}" if possible else "an installed backend",
        fix=did_you_mean(name, [*short, *possible]),
    )
    return None


def resolve_prompts(
    spec: Spec, params: Mapping[str, Json], evaluator: Evaluator, sink: Sink
) -> dict[str, Prompt]:
    """The entries of `prompts:`."""
    prompts: dict[str, Prompt] = {}
    for name, declared in spec.prompts.items():
        values: dict[str, Json] = {}
        whole = True
        for field in language.PROMPT_FIELDS:
            entry = declared.settings.get(field.name)
            if entry is None:
                whole &= not field.required
                continue
            node = evaluator.evaluate(entry.value, params)
            value = Coercion(sink).field(node, field, field.name)
            if isinstance(value, Failed):
                whole = False
            else:
                values[field.name] = value
        note = declared.settings.get(language.DOC.name)
        if note is not None:
            resolve_text(note.value, language.DOC, params, evaluator, sink)
        examples = _examples(declared.examples, params, evaluator, sink)
        if examples is None or not whole:
            continue
        acknowledgement, system = values.get("acknowledgement"), values.get("system")
        instruction = str(values["instruction"])
        if values.get("role") == "system":
            second = "system" if system is not None else "acknowledgement"
            if values.get(second) is not None:
                sink.error(
                    "AGC213",
                    f"prompt `{name}` has an instruction of the system, so that `{second}` has no "
                    "place beside it",
                    declared.settings[second].value.span,
                    fix=f"remove `{second}`, or set `role: user`",
                )
                continue
            system, instruction = instruction, ""
        # In a conversation the task may be all that is said.
        bare = values.get("reply_format") != "text" and not system
        if bare and not str(values["instruction"]).strip():
            sink.warning(
                "AGC212",
                f"the instruction of prompt `{name}` is empty",
                declared.settings["instruction"].value.span,
                fix="say what the agent is to do",
            )
        marker, called = values.get("output_marker"), values.get("reply_format") == "tools"
        prompts[name] = Prompt(
            name=name,
            instruction=instruction,
            acknowledgement=acknowledgement if isinstance(acknowledgement, str) else None,
            examples=examples,
            reply_format=str(values.get("reply_format", "react")),
            system=system if isinstance(system, str) else None,
            observation_prefix=str(
                values.get("observation_prefix", "" if called else OBSERVATION_PREFIX)
            ),
            output_marker=marker if isinstance(marker, str) else None,
            memory=str(values.get("memory", "all")),
            origin=Origin(declared.span),
        )
    return prompts


def _examples(
    node: Node | None, params: Mapping[str, Json], evaluator: Evaluator, sink: Sink
) -> tuple[tuple[tuple[str, str], ...], ...] | None:
    if node is None:
        return ()
    expected = language.EXAMPLES_DOC
    if not isinstance(node, SequenceNode):
        sink.error(
            "AGC203", f"`examples` cannot be {described(node)}", node.span, expected=expected
        )
        return None
    conversations: list[tuple[tuple[str, str], ...]] = []
    whole = True
    for item in node.items:
        if not isinstance(item, SequenceNode):
            sink.error(
                "AGC203",
                f"an example cannot be {described(item)}",
                item.span,
                expected="a list of {role, content}",
            )
            whole = False
            continue
        messages: list[tuple[str, str]] = []
        for number, each in enumerate(item.items):
            coercion = Coercion(sink)
            message = evaluator.evaluate(each, params)
            value = coercion.field(
                message,
                Field(
                    name="message",
                    schema={"type": "object"},
                    doc="",
                    fields=language.MESSAGE_FIELDS,
                ),
                f"examples.{len(conversations)}.{number}",
            )
            if not isinstance(value, dict):
                whole = False
                continue
            role = str(value["role"])
            if role != ("user", "assistant")[number % 2]:
                sink.error(
                    "AGC203",
                    f"message {number + 1} of an example cannot be of `{role}`",
                    each.span,
                    expected="user and assistant in turns, user first",
                )
                whole = False
            messages.append((role, str(value["content"])))
        conversations.append(tuple(messages))
    return tuple(conversations) if whole else None


def resolve_text(
    node: Node | None,
    field: Field,
    params: Mapping[str, Json],
    evaluator: Evaluator,
    sink: Sink,
) -> str | None:
    """A single text of the top level."""
    if node is None:
        return None
    value = Coercion(sink).field(evaluator.evaluate(node, params), field, field.name)
    return value if isinstance(value, str) else None


def resolve_paper(
    spec: Spec, params: Mapping[str, Json], evaluator: Evaluator, sink: Sink
) -> dict[str, Json]:
    """What is known about the paper."""
    if spec.paper is None:
        return {}
    found = _record(spec.paper, language.PAPER_FIELDS, "paper", params, evaluator, sink)
    return found or {}


def resolve_discrepancies(
    spec: Spec, params: Mapping[str, Json], evaluator: Evaluator, sink: Sink
) -> tuple[Mapping[str, Json], ...]:
    """The list under `discrepancies:`."""
    node = spec.discrepancies
    if node is None or isinstance(node, Unknown):
        return ()
    if not isinstance(node, SequenceNode):
        sink.error(
            "AGC203",
            f"`discrepancies` cannot be {described(node)}",
            node.span,
            expected="a list of {what, paper, code, chosen}",
        )
        return ()
    fields = language.DISCREPANCY_FIELDS
    records = [
        _record(item, fields, f"discrepancies.{number}", params, evaluator, sink)
        for number, item in enumerate(node.items)
    ]
    return tuple(record for record in records if record is not None)


def _record(
    node: Node,
    fields: tuple[Field, ...],
    path: str,
    params: Mapping[str, Json],
    evaluator: Evaluator,
    sink: Sink,
) -> dict[str, Json] | None:
    computed = evaluator.evaluate(node, params)
    if isinstance(computed, Unknown):
        return None
    names = ", ".join(f"`{field.name}`" for field in fields)
    mapping = as_mapping(computed, Place(path, f"`{path}`"), sink, f"a mapping with {names}")
    value = None if mapping is None else Coercion(sink).group(mapping, fields, path)
    return value if isinstance(value, dict) else None


def taken_away(
    nulls: Iterable[str],
    allowed: Mapping[str, Field],
    others: Iterable[EnvironmentBackend | ServerBackend],
) -> frozenset[str]:
    """Of the keys that say `null` those that take none: of another backend of the section
    (`others`), as a scale has it that takes another, or with a default, as an expression has it
    that sets the key in some cases only."""
    known = {field.name for backend in others for field in backend.fields}
    return frozenset(
        key
        for key in nulls
        if (key in known if (field := allowed.get(key)) is None else _has_default(field))
    )


def _has_default(field: Field) -> bool:
    return not field.required and "null" not in types_of(field.schema)
