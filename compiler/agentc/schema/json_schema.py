"""The published JSON Schema (draft 2020-12) of the spec language, for editors and other tools.

Built from the same tables that structuring reads: the language, the stage kinds, the backends.
It is a little wider than the compiler: names, rounds and required settings that `defaults:` may
give are left to `agentc check`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from agentc.backend_api import BackendTable, EnvironmentBackend, ServerBackend, StageBackend
from agentc.kinds import KINDS, Kind
from agentc.kinds.field import Field, Json, Role, is_secret
from agentc.schema import language
from agentc.schema.describe import types_of
from agentc.templates.library import shipped_names

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Json]

_EXPRESSION: Schema = {"$ref": "#/$defs/expression"}
_PER_ROUND: Schema = {"$ref": "#/$defs/per_round"}
_GROUPED: Schema = {"$ref": "#/$defs/grouped_number"}
_LIST: Schema = {"type": "array", "minItems": 1}
_DEFINITIONS: Schema = {
    "expression": {
        "description": "An expression over params, evaluated when the spec is compiled.",
        "type": "string",
        "pattern": r"\{\{",
    },
    "grouped_number": {
        "description": "A number with `_` between its digits, such as 10_000.",
        "type": "string",
        "pattern": r"^[-+]?[0-9]+(_[0-9]+)+(\.[0-9]*)?$",
    },
    "per_round": {
        "description": "A value for each round of a repeat.",
        "type": "object",
        "properties": {
            language.PER_ROUND: {"anyOf": [{"type": "array", "minItems": 1}, _EXPRESSION]}
        },
        "required": [language.PER_ROUND],
        "additionalProperties": False,
    },
}


def language_schema(table: BackendTable) -> Schema:
    """The schema of a whole spec."""
    definitions: Schema = dict(_DEFINITIONS)
    for kind in KINDS:
        definitions[_stage_name(kind)] = _stage(kind, table)
    definitions["placement"] = _mapping(language.PLACEMENT_FIELDS)
    definitions["stage"] = {"title": "stage", **_dispatch("kind", _kinds(), _kind_branches())}
    definitions["repeat"] = _repeat()
    resources: list[EnvironmentBackend | ServerBackend] = [*table.environments()]
    resources += table.servers()
    for backend in resources:
        definitions[_resource_name(backend.id)] = {
            "title": backend.id,
            "description": backend.doc,
            **_mapping(backend.fields, extra={"backend": _text(language.RESOURCE_KEYS["backend"])}),
        }
    definitions["used"] = _used()
    sections: Schema = {
        "agentc": {"const": language.VERSION},
        **_use_properties(),
        **{field.name: _published(field) for field in language.TOP_LEVEL_FIELDS},
        "paper": _or_used(_mapping(language.PAPER_FIELDS)),
        "params": _named({"title": "param", **_mapping(language.PARAM_FIELDS)}),
        "matrix": {"type": "object", "additionalProperties": {"anyOf": [_LIST, _EXPRESSION]}},
        "scales": _named(_scale()),
        "models": _named(_or_used({"$ref": "#/$defs/stage_model"})),
        "environments": _named(_or_used(_resources("environment", table.environments()))),
        "servers": _named(_or_used(_resources("server", table.servers()))),
        "prompts": _named(
            _or_used(
                {
                    "title": "prompt",
                    **_mapping(language.PROMPT_FIELDS, extra={"examples": _examples()}),
                }
            )
        ),
        "defaults": _or_used(_defaults()),
        "stages": _named(_or_used(_stage_or_repeat())),
        "claims": _named({"title": "claim", **_mapping(language.CLAIM_FIELDS)}),
        "budget": _mapping(language.BUDGET_FIELDS),
        "discrepancies": {"type": "array", "items": _mapping(language.DISCREPANCY_FIELDS)},
    }
    for key, doc in language.TOP_LEVEL.items():
        section = sections[key]
        assert isinstance(section, dict)
        section.setdefault("description", doc)
    return {
        "$schema": DIALECT,
        "$id": f"urn:agentc:spec:{language.VERSION}",
        "title": "agentc spec",
        "type": "object",
        "properties": sections,
        "required": ["agentc", "name"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _use_properties() -> Schema:
    names: list[Json] = list(shipped_names())
    return {
        "use": {
            "description": language.USE_KEYS["use"],
            "anyOf": [{"enum": names}, {"type": "string", "pattern": r"^\.{1,2}/"}],
        },
        "with": {"type": "object", "description": language.USE_KEYS["with"]},
        "append": {"type": "object", "description": language.USE_KEYS["append"]},
    }


def _used() -> Schema:
    """A declaration from a template: what it overrides is left to `agentc check`."""
    return {"type": "object", "properties": _use_properties(), "required": ["use"]}


def _scale() -> Schema:
    parts: Schema = {
        key: {"type": "object", "description": doc} for key, doc in language.SCALE_KEYS.items()
    }
    return {"title": "scale", "type": "object", "properties": parts, "additionalProperties": False}


def _or_used(plain: Schema) -> Schema:
    return {"if": {"required": ["use"]}, "then": {"$ref": "#/$defs/used"}, "else": plain}


def kind_schema(kind: Kind, table: BackendTable) -> Schema:
    """The schema of one stage of a kind."""
    definitions = {**_DEFINITIONS, "placement": _mapping(language.PLACEMENT_FIELDS)}
    return {
        "$schema": DIALECT,
        **_stage(kind, table),
        "title": f"agentc stage of kind {kind.name}",
        "$defs": definitions,
    }


def fields_schema(title: str, fields: Sequence[Field]) -> Schema:
    """The schema of a mapping with declared fields, such as a backend's options."""
    return {"$schema": DIALECT, "title": title, **_mapping(fields), "$defs": _DEFINITIONS}


def _stage(kind: Kind, table: BackendTable) -> Schema:
    backends = table.stage_backends(kind.name)
    is_model = kind.name == "model"
    properties: Schema = {
        "kind": {"const": kind.name, "description": kind.doc},
        "backend": _backend_names(backends, kind.name, {"auto": language.AUTO}),
        "doc": _text(language.STAGE_KEYS["doc"]),
        **{role.name: _role(role) for role in kind.roles},
        **{use: _text(language.USES[use]) for use in kind.uses},
        **{field.name: _published(field) for field in kind.fields},
        "options": {"description": language.STAGE_KEYS["options"], **_mapping(_options(backends))},
        "placement": {
            "$ref": "#/$defs/placement",
            "description": language.STAGE_KEYS["placement"],
        },
    }
    required: list[Json] = [] if is_model else ["kind"]
    required += [role.name for role in kind.roles if not role.optional]
    schema: Schema = {
        "type": "object",
        "title": f"{kind.name} stage",
        "description": kind.doc,
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    narrowed: list[Json] = [
        {
            "if": _is_backend(backend.id, kind.name),
            "then": {"properties": {"options": _options_of(backend)}},
        }
        for backend in backends
        if len(backends) > 1
    ]
    if narrowed:
        schema["allOf"] = narrowed
    return schema


def _options_of(backend: StageBackend) -> Schema:
    doc = f"Settings of {backend.id}'s own" + ("." if backend.options else "; it has none.")
    return {"title": f"options of {backend.id}", "description": doc, **_mapping(backend.options)}


def _options(backends: Iterable[StageBackend]) -> tuple[Field, ...]:
    fields: dict[str, Field] = {}
    for backend in backends:
        for field in backend.options:
            fields.setdefault(field.name, field)
    return tuple(fields.values())


def _kinds() -> Schema:
    names: list[Json] = [kind.name for kind in KINDS]
    docs: list[Json] = [kind.doc for kind in KINDS]
    text = language.STAGE_KEYS["kind"]
    return {"kind": {"description": text, "enum": names, "enumDescriptions": docs}}


def _stage_or_repeat() -> Schema:
    neither: Schema = {
        # Editors offer what stands here before it is known which of the two an entry becomes.
        "title": "stage or repeat",
        "type": "object",
        "properties": {"repeat": {"description": language.REPEAT_KEYS["repeat"]}, **_kinds()},
        "required": ["kind"],
    }
    otherwise: Schema = {
        "if": {"required": ["repeat"]},
        "then": {"$ref": "#/$defs/repeat"},
        "else": neither,
    }
    return {
        "if": {"required": ["kind"]},
        "then": {"$ref": "#/$defs/stage"},
        "else": otherwise,
    }


def _kind_branches() -> list[Json]:
    return [
        {
            "if": {"properties": {"kind": {"const": kind.name}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/{_stage_name(kind)}"},
        }
        for kind in KINDS
    ]


def _dispatch(key: str, properties: Schema, branches: list[Json]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [key],
        "allOf": branches,
        "description": f"Which keys there are depends on `{key}`.",
    }


def _resources(
    what: str, backends: Sequence[EnvironmentBackend] | Sequence[ServerBackend]
) -> Schema:
    if not backends:
        return {"type": "object", "required": ["backend"]}
    family = backends[0].id.split(".")[0]
    branches: list[Json] = [
        {
            "if": _is_backend(each.id, family),
            "then": {"$ref": f"#/$defs/{_resource_name(each.id)}"},
        }
        for each in backends
    ]
    names: Schema = {"backend": _backend_names(backends, family, {})}
    return {"title": what, **_dispatch("backend", names, branches)}


def _is_backend(backend: str, family: str) -> Schema:
    names: list[Json] = [backend, *_short(backend, family)]
    return {"properties": {"backend": {"enum": names}}, "required": ["backend"]}


def _backend_names(
    backends: Iterable[StageBackend | EnvironmentBackend | ServerBackend],
    family: str,
    more: dict[str, str],
) -> Schema:
    docs = {each.id: each.doc for each in backends}
    docs |= {short: f"{docs[each]} ({each})" for each in [*docs] for short in _short(each, family)}
    docs |= more
    return {
        "description": language.STAGE_KEYS["backend"],
        "anyOf": [
            {"enum": [*docs], "enumDescriptions": [*docs.values()]},
            _EXPRESSION,
            _PER_ROUND,
        ],
    }


def _short(backend: str, family: str) -> tuple[str, ...]:
    for short in (backend.removesuffix(f".{family}"), backend.removeprefix(f"{family}.")):
        if short != backend:
            return (short,)
    return ()


def _repeat() -> Schema:
    carry: Schema = {
        "title": "carried name",
        "type": "object",
        "properties": {key: _text(doc) for key, doc in language.CARRY_KEYS.items()},
        "required": [*language.CARRY_KEYS],
        "additionalProperties": False,
    }
    inner: Schema = {
        "title": "rounds",
        "description": language.REPEAT_KEYS["repeat"],
        "type": "object",
        "properties": {
            "n": _published(language.ROUNDS),
            "carry": {
                **_named(carry),
                "description": language.REPEAT_INNER_KEYS["carry"],
            },
            "stages": {
                **_named(_or_used({"$ref": "#/$defs/stage"})),
                "description": language.REPEAT_INNER_KEYS["stages"],
            },
        },
        "required": ["n", "stages"],
        "additionalProperties": False,
    }
    return {
        "title": "repeat",
        "type": "object",
        "properties": {"repeat": inner, "doc": _text(language.REPEAT_KEYS["doc"])},
        "required": ["repeat"],
        "additionalProperties": False,
    }


def _defaults() -> Schema:
    fragments: dict[str, list[Schema]] = {}
    for kind in KINDS:
        for field in kind.fields:
            published = _published(field, relaxed=True)
            known = fragments.setdefault(field.name, [])
            if published not in known:
                known.append(published)
    properties: Schema = {name: _any_of(known) for name, known in sorted(fragments.items())}
    properties |= {use: _text(doc) for use, doc in language.USES.items()}
    properties["placement"] = {
        "$ref": "#/$defs/placement",
        "description": language.STAGE_KEYS["placement"],
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _any_of(fragments: Sequence[Schema]) -> Schema:
    """What kinds say differently of a setting of one name, with what each says of it."""
    if len(fragments) == 1:
        return fragments[0]
    docs = dict.fromkeys(str(fragment["description"]) for fragment in fragments)
    return {"description": " Or: ".join(docs), "anyOf": [*fragments]}


def _examples() -> Schema:
    conversation: Schema = {"type": "array", "items": _mapping(language.MESSAGE_FIELDS)}
    return {"type": "array", "items": conversation, "description": language.EXAMPLES_DOC}


def _named(values: Schema) -> Schema:
    return {
        "type": ["object", "null"],
        "propertyNames": {"pattern": language.NAME_PATTERN},
        "additionalProperties": values,
    }


def _role(role: Role) -> Schema:
    shapes: list[Json] = [{"type": "string"}, _PER_ROUND]
    if role.many:
        shapes.append({"type": "array", "items": {"type": "string"}, "minItems": 1})
    accepts = " or ".join(accepted.name for accepted in role.accepts)
    return {"description": f"{role.doc} Takes {accepts}.", "anyOf": shapes}


def _mapping(fields: Sequence[Field], extra: Schema | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**{field.name: _published(field) for field in fields}, **(extra or {})},
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }


def _published(field: Field, relaxed: bool = False) -> Schema:
    """A field as a property: its fragment, or an expression, or a value for each round."""
    if field.fields:
        fragment = _mapping(field.fields)
        if "null" in types_of(field.schema):
            fragment["type"] = ["object", "null"]
        shapes: list[Json] = [fragment, _PER_ROUND]
        if is_secret(field):
            shapes.append(_EXPRESSION)
    else:
        fragment = dict(field.schema)
        shapes = [fragment, _PER_ROUND]
        types = types_of(fragment)
        if set(types) & {"integer", "number"}:
            shapes.append(_GROUPED)
        if types:
            shapes.append(_EXPRESSION)
        if "string" in types and "enum" not in fragment and "pattern" not in fragment:
            # Text may be written without quotes even where YAML reads a number: `code: 2e-5`.
            shapes.append({"type": ["number", "boolean"]})
    published: Schema = {"description": field.doc, "x-identity": field.identity}
    if field.required:
        if not relaxed:
            published["description"] = f"{field.doc} Required."
    elif field.default not in (None, {}):
        published["default"] = field.default  # type: ignore[assignment]
        if not relaxed:
            # Editors do not show `default` by themselves.
            shown = json.dumps(field.default, ensure_ascii=False)
            published["description"] = f"{field.doc} Default: {shown}."
    published["anyOf"] = shapes
    return published


def _text(doc: str) -> Schema:
    return {"type": "string", "description": doc}


def _stage_name(kind: Kind) -> str:
    return f"stage_{kind.name}"


def _resource_name(backend: str) -> str:
    return f"resource_{backend.replace('.', '_')}"
