"""Structuring: the positioned tree becomes syntax nodes; unknown and missing keys are errors.

Values stay nodes: they are computed and typed in `agentc.passes`, once params and rounds are
known. Stages are read by `stage_structure.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from agentc.backend_api import BackendTable, StageBackend
from agentc.diagnostics.diagnostic import Source, Span
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.kinds import KINDS
from agentc.kinds.field import Field
from agentc.schema import language
from agentc.schema.aliases import without_aliases, without_standard_names
from agentc.schema.describe import describe
from agentc.schema.keys import Place, as_mapping, checked_name, is_name, misspelt_use, read_keys
from agentc.schema.stage_structure import read_model, read_stage_or_repeat
from agentc.schema.standard_names import DEFAULT_NAMES, standard_names
from agentc.source.scalars import is_null, read_integer
from agentc.source.tree import Entry, Mapping, Node, Scalar, Unknown, described, text_of
from agentc.syntax.nodes import (
    ParamDecl,
    PromptDecl,
    RepeatDecl,
    ResourceDecl,
    Spec,
    StageDecl,
)

_Decl = TypeVar("_Decl")
_GROUPS = tuple(field for kind in KINDS for field in kind.fields if field.fields)


def structure(root: Node | None, source: Source, table: BackendTable, sink: Sink) -> Spec:
    """The spec as far as it can be read; everything wrong with its structure is in the sink."""
    if root is None:
        return Spec(source=source, span=Span(source, 1, 1, 1, 1))
    place = Place("", "the spec")
    expected = "a mapping that starts with `agentc: 1` and `name: ...`"
    mapping = as_mapping(root, place, sink, expected)
    if mapping is None:
        return Spec(source=source, span=root.span)
    top = Place("", "the top level")
    keys = read_keys(mapping, language.TOP_LEVEL, top, sink, table, outline=True)
    broken: set[str] = set()
    empty: dict[str, Span] = {}
    start = Span(source, root.span.line, root.span.column, root.span.line, root.span.column + 1)
    _check_version(keys.get("agentc"), start, sink)
    if "name" not in keys and not mapping.partial:
        sink.error("AGC202", "the spec has no `name`", start, fix="write `name: my_experiment`")

    def section(key: str, read: Callable[[Scalar, Node], _Decl | None]) -> dict[str, _Decl]:
        entry = keys.get(key)
        declared = dict(_declared(entry, read, sink))
        if entry is None:
            return declared
        if not _is_table(entry.value) or (isinstance(entry.value, Mapping) and entry.value.partial):
            broken.add(key)
        elif not declared and entry.key.text != key:
            broken.add(key)  # misspelt, which was reported: that it is empty too can wait
        elif not declared:
            empty[key] = entry.key.span
        return declared

    defaults = keys.get("defaults")
    if defaults is not None and not _is_table(defaults.value):
        broken.add("defaults")
    models = section("models", lambda name, node: read_model(name, node, sink, table))
    stages: dict[str, StageDecl | RepeatDecl] = section(
        "stages", lambda name, node: read_stage_or_repeat(name, node, sink, table)
    )
    if "stages" in empty:
        report_empty("stages", empty.pop("stages"), sink)
        broken.add("stages")
    _report_shared_names(models, stages, sink)
    return Spec(
        source=source,
        span=root.span,
        name=_value(keys, "name"),
        description=_value(keys, "description"),
        paper=_value(keys, "paper"),
        params=section("params", lambda name, node: _param(name, node, sink)),
        matrix=_value(keys, "matrix"),
        models=models,
        environments=section(
            "environments", lambda n, v: _resource("environment", n, v, table, sink)
        ),
        servers=section("servers", lambda n, v: _resource("server", n, v, table, sink)),
        prompts=section("prompts", lambda name, node: _prompt(name, node, sink)),
        software=_value(keys, "software"),
        defaults=_defaults(defaults, sink),
        stages={name: declared for name, declared in stages.items() if name not in models},
        discrepancies=_value(keys, "discrepancies"),
        claims=_claims(keys.get("claims"), sink),
        budget=_value(keys, "budget"),
        track=_value(keys, "track"),
        search=_value(keys, "search"),
        broken=frozenset(broken),
        misnamed=tuple(name for name in (*models, *stages) if not is_name(name))[:20],
        empty=empty,
    )


def report_empty(key: str, span: Span, sink: Sink) -> None:
    """Report a section without entries that something needs."""
    sink.error(
        "AGC211",
        f"`{key}` is empty",
        span,
        expected=f"a mapping of names to declarations. {language.TOP_LEVEL[key]}",
        fix=None if key == "stages" else "declare what the rest of the spec takes from it",
    )


def _report_shared_names(
    models: dict[str, StageDecl], stages: dict[str, StageDecl | RepeatDecl], sink: Sink
) -> None:
    for name in stages:
        if name in models:
            sink.error(
                "AGC207",
                f"`{name}` is the name of a model already",
                stages[name].name.span,
                notes=(f"the model is declared in line {models[name].name.span.line}",),
                fix="rename one of them",
            )


def _is_nothing(node: Node) -> bool:
    return isinstance(node, Scalar) and not node.quoted and is_null(node.text)


def _is_table(node: Node) -> bool:
    """A mapping, or nothing where one may be."""
    return isinstance(node, Mapping) or _is_nothing(node)


def read_params(entry: Entry | None, sink: Sink) -> dict[str, ParamDecl]:
    """The declarations under `params:`, of a spec or of a template."""
    return dict(_declared(entry, lambda name, node: _param(name, node, sink), sink))


def check_required(
    keys: dict[str, Entry], fields: Iterable[Field], name: Scalar, place: Place, sink: Sink
) -> bool:
    """Report fields without a default that are not given; whether all are."""
    missing = [field for field in fields if field.required and field.name not in keys]
    for field in missing:
        sink.error(
            "AGC202",
            f"{place.what} needs `{field.name}`",
            name.span,
            expected=f"`{field.name}`: {describe(field.schema)}",
            notes=(field.doc,),
            steps=place.steps,
        )
    return not missing


def _required(fields: Iterable[Field]) -> list[str]:
    return [field.name for field in fields if field.required]


def _declared(
    entry: Entry | None, read: Callable[[Scalar, Node], _Decl | None], sink: Sink
) -> Iterable[tuple[str, _Decl]]:
    if entry is None:
        return
    key = entry.key.text
    what = language.TOP_LEVEL.get(key, key)
    expected = f"a mapping of names to declarations. {what}"
    mapping = as_mapping(entry.value, Place(key, f"`{key}`"), sink, expected)
    for item in () if mapping is None else mapping.entries:
        checked_name(item.key, f"an entry of `{key}`", sink)
        declared = read(item.key, item.value)
        if declared is not None:
            yield item.key.text, declared


def _value(keys: dict[str, Entry], key: str) -> Node | None:
    entry = keys.get(key)
    return None if entry is None else entry.value


def _check_version(entry: Entry | None, start: Span, sink: Sink) -> None:
    if entry is None:
        sink.error(
            "AGC202",
            "the spec does not say which version of the language it is written in",
            start,
            fix=f"write `agentc: {language.VERSION}` as the first line",
        )
        return
    node = entry.value
    if isinstance(node, Unknown):
        return
    whole = isinstance(node, Scalar) and not node.quoted and node.text.isdigit()
    if whole and isinstance(node, Scalar) and read_integer(node.text) == language.VERSION:
        return
    sink.error(
        "AGC208",
        f"the version of the language cannot be {described(node)}",
        node.span,
        expected=f"`{language.VERSION}`",
        fix=f"write `agentc: {language.VERSION}`",
    )


def _param(name: Scalar, node: Node, sink: Sink) -> ParamDecl | None:
    place = Place(f"params.{name.text}", f"param `{name.text}`")
    expected = "a mapping such as `{type: int, default: 0}`"
    mapping = as_mapping(node, place, sink, expected)
    if mapping is None:
        return ParamDecl(name=name, settings={})
    fields = {field.name: field for field in language.PARAM_FIELDS}
    keys = read_keys(mapping, fields, place, sink, required=_required(fields.values()))
    if not mapping.partial:
        check_required(keys, language.PARAM_FIELDS, name, place, sink)
    return ParamDecl(name=name, settings=keys)


def _resource(
    what: Literal["environment", "server"],
    name: Scalar,
    node: Node,
    table: BackendTable,
    sink: Sink,
) -> ResourceDecl | None:
    place = Place(f"{what}s.{name.text}", f"{what} `{name.text}`")
    expected = "a mapping with `backend` and its settings"
    mapping = as_mapping(node, place, sink, expected)
    if mapping is None:
        nothing = Mapping((), name.span)
        return ResourceDecl(name=name, backend=None, settings=nothing, span=name.span)
    backend = mapping.find("backend") or _misspelt_backend(mapping, place, sink)
    mapping = _with_our_names(mapping, backend, what, place, table, sink)
    if backend is None and not mapping.partial and misspelt_use(mapping, place, sink) is None:
        backends = [each.id for each in table.resources(what)]
        sink.error(
            "AGC202",
            f"{place.what} needs `backend`",
            name.span,
            expected=f"`backend: ...` with one of {listed(backends)}",
        )
    return ResourceDecl(
        name=name,
        backend=backend,
        settings=mapping,
        span=name.span,
    )


def _with_our_names(
    mapping: Mapping,
    backend: Entry | None,
    what: str,
    place: Place,
    table: BackendTable,
    sink: Sink,
) -> Mapping:
    """The entry with the standard names of its backend's settings replaced."""
    name = text_of(backend.value) if backend is not None else None
    known = None if name is None else table.find(name, {"server": "serve"}.get(what, "env"))
    if known is None or isinstance(known, StageBackend):
        return mapping
    names = standard_names([field.name for field in known.fields])
    return without_aliases(mapping, names, place, sink)


def _misspelt_backend(mapping: Mapping, place: Place, sink: Sink) -> Entry | None:
    """What was meant as the `backend` of an entry that has none; it is reported."""
    for entry in mapping.entries:
        if did_you_mean(entry.key.text, ["backend"]):
            sink.error(
                "AGC201",
                f"unknown key `{entry.key.text}` in {place.what}",
                entry.key.span,
                fix="did you mean `backend`?",
            )
            return entry
    return None


def _prompt(name: Scalar, node: Node, sink: Sink) -> PromptDecl | None:
    place = Place(f"prompts.{name.text}", f"prompt `{name.text}`")
    mapping = as_mapping(node, place, sink, "a mapping with `instruction`")
    if mapping is None:
        return PromptDecl(name=name, settings={}, examples=None, span=name.span)
    fields = {field.name: field for field in language.PROMPT_FIELDS}
    required = _required(fields.values())
    keys = read_keys(mapping, {**fields, **language.PROMPT_KEYS}, place, sink, required=required)
    if not mapping.partial:
        check_required(keys, language.PROMPT_FIELDS, name, place, sink)
    examples = keys.pop("examples", None)
    return PromptDecl(
        name=name,
        settings=keys,
        examples=None if examples is None else examples.value,
        span=name.span,
    )


def _claims(entry: Entry | None, sink: Sink) -> dict[str, Entry]:
    """Claims by name, as written; `agentc.front.resolve_claims` reads them."""
    if entry is None:
        return {}
    expected = "a mapping of names to claims, such as `table_2: {what: ..., stage: ..., value: 1}`"
    mapping = as_mapping(entry.value, Place("claims", "`claims`"), sink, expected)
    entries = () if mapping is None else mapping.entries
    return {claim.key.text: claim for claim in entries if checked_name(claim.key, "a claim", sink)}


def _defaults(entry: Entry | None, sink: Sink) -> dict[str, Entry]:
    if entry is None:
        return {}
    expected = "a mapping of stage keys to values"
    place = Place("defaults", "`defaults`")
    mapping = as_mapping(entry.value, place, sink, expected)
    if mapping is None:
        return {}
    mapping = without_aliases(mapping, DEFAULT_NAMES, place, sink)
    mapping = without_standard_names(mapping, _GROUPS, place, sink)
    return {default.key.text: default for default in mapping.entries}
