"""The published JSON Schema (draft 2020-12) of the spec language, for editors and other tools.

Built from the same tables that structuring reads: the language, the stage kinds, the backends.
It is a little wider than the compiler: names, rounds and required settings that `defaults:` may
give are left to `agentc check`.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentc.backend_api import (
    BackendTable,
    EnvironmentBackend,
    ServerBackend,
    StageBackend,
    entry_fields,
    installed_trackers,
)
from agentc.ir.module import ALGORITHM
from agentc.kinds import KINDS, MODEL_KIND, Kind
from agentc.kinds.field import Field, Json, Role
from agentc.published.fragments import (
    DEFINITIONS,
    EXPRESSION,
    PER_ROUND,
    Schema,
    backend_names,
    dispatch,
    field_schema,
    is_backend,
    mapping_schema,
    named_schema,
    or_used,
    resource_entries,
    resource_name,
    text_schema,
    use_properties,
    used_name,
    used_schema,
)
from agentc.schema import language

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LIST: Schema = {"type": "array", "minItems": 1}


def language_schema(table: BackendTable) -> Schema:
    """The schema of a whole spec."""
    definitions: Schema = dict(DEFINITIONS)
    for kind in KINDS:
        definitions[_stage_name(kind)] = _stage(kind, table)
    definitions["placement"] = mapping_schema(language.PLACEMENT_FIELDS)
    definitions["stage"] = {"title": "stage", **dispatch("kind", _kinds(), _kind_branches())}
    definitions["repeat"] = _repeat()
    resources: list[EnvironmentBackend | ServerBackend] = [*table.environments()]
    resources += table.servers()
    for backend in resources:
        definitions[resource_name(backend.id)] = {
            "title": backend.id,
            "description": backend.doc,
            **mapping_schema(
                (*entry_fields(backend), *_sharing_beside(backend.fields)),
                extra={key: text_schema(doc) for key, doc in language.RESOURCE_KEYS.items()},
            ),
        }
    note = text_schema(language.PROMPT_KEYS["doc"])
    prompt = mapping_schema(language.PROMPT_FIELDS, extra={"examples": _examples(), "doc": note})
    prompt["title"] = "prompt"
    paper, defaults = mapping_schema(language.PAPER_FIELDS), _defaults()
    written: dict[str, dict[str, Schema]] = {
        "paper": {"": _properties(paper)},
        "defaults": {"": _properties(defaults)},
        "model": {"": _properties(definitions["stage_model"])},
        "environment": {},
        "server": {},
        "prompt": {"": _properties(prompt)},
        "stage": {kind.name: _properties(definitions[_stage_name(kind)]) for kind in KINDS},
    }
    for makes, keys in written.items():
        definitions[used_name(makes)] = used_schema(makes, keys)
    sections: Schema = {
        "agentc": {"const": language.VERSION},
        **use_properties("spec"),
        **{field.name: field_schema(field) for field in language.TOP_LEVEL_FIELDS},
        "paper": or_used("paper", paper),
        "params": named_schema({"title": "param", **mapping_schema(language.PARAM_FIELDS)}),
        "matrix": {"type": "object", "additionalProperties": {"anyOf": [_LIST, EXPRESSION]}},
        "scales": named_schema(_scale()),
        "models": named_schema(
            {
                "if": {"type": "string"},
                "then": {"minLength": 1, "description": language.MODEL_TEXT},
                "else": or_used("model", {"$ref": "#/$defs/stage_model"}),
            }
        ),
        "environments": named_schema(
            or_used("environment", resource_entries("environment", table.environments()))
        ),
        "servers": named_schema(or_used("server", resource_entries("server", table.servers()))),
        "prompts": named_schema(or_used("prompt", prompt)),
        "backends": {"type": "array", "items": {"type": "string", "minLength": 1}},
        "software": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}},
        "defaults": or_used("defaults", defaults),
        "stages": named_schema(or_used("stage", _stage_or_repeat())),
        "claims": named_schema({"title": "claim", **mapping_schema(language.CLAIM_FIELDS)}),
        "budget": mapping_schema(language.BUDGET_FIELDS),
        "track": _track(),
        "search": mapping_schema(language.SEARCH_FIELDS),
        "discrepancies": {"type": "array", "items": mapping_schema(language.DISCREPANCY_FIELDS)},
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


def _track() -> Schema:
    """A tracker's name, a list of names, or names with their settings."""
    trackers = installed_trackers()
    settings: Schema = {
        name: {"anyOf": [mapping_schema(tracker.fields), {"type": "null"}],
               "description": tracker.doc}
        for name, tracker in trackers.items()
    }  # fmt: skip
    name: Schema = {"enum": list(trackers)}
    several: Schema = {"type": "array", "items": name}
    named: Schema = {"type": "object", "properties": settings, "additionalProperties": False}
    return {"anyOf": [name, several, named, EXPRESSION]}


def _sharing_beside(fields: Sequence[Field]) -> tuple[Field, ...]:
    """What every entry takes, unless its backend calls a setting of its own so."""
    own = {field.name for field in fields}
    return tuple(field for field in language.SHARING_FIELDS if field.name not in own)


def _properties(schema: Json) -> Schema:
    properties = schema["properties"] if isinstance(schema, dict) else None
    assert isinstance(properties, dict)
    return properties


def _scale() -> Schema:
    parts: Schema = {
        key: {"type": "object", "description": doc} for key, doc in language.SCALE_KEYS.items()
    }
    return {"title": "scale", "type": "object", "properties": parts, "additionalProperties": False}


def kind_schema(kind: Kind, table: BackendTable) -> Schema:
    """The schema of one stage of a kind."""
    definitions = {**DEFINITIONS, "placement": mapping_schema(language.PLACEMENT_FIELDS)}
    return {
        "$schema": DIALECT,
        **_stage(kind, table),
        "title": f"agentc stage of kind {kind.name}",
        "$defs": definitions,
    }


def fields_schema(title: str, fields: Sequence[Field]) -> Schema:
    """The schema of a mapping with declared fields, such as a backend's options."""
    return {"$schema": DIALECT, "title": title, **mapping_schema(fields), "$defs": DEFINITIONS}


def _stage(kind: Kind, table: BackendTable) -> Schema:
    backends = table.stage_backends(kind.name)
    is_model = kind.name == MODEL_KIND
    properties: Schema = {
        "kind": {"const": kind.name, "description": kind.doc},
        "backend": backend_names(backends, kind.name, {"auto": language.AUTO}),
        "doc": text_schema(language.STAGE_KEYS["doc"]),
        **{role.name: _role(role) for role in kind.roles},
        **{alias: _alias(role) for role in kind.roles for alias in role.aliases},
        **({} if kind.named is None else {kind.named.name: _named_roles(kind.named)}),
        **{use: text_schema(language.USES[use]) for use in kind.uses},
        **{field.name: field_schema(field) for field in kind.fields},
        **_algorithm(kind, table),
        "options": {
            "description": language.STAGE_KEYS["options"],
            **_options(backends),
        },
        "placement": {
            "$ref": "#/$defs/placement",
            "description": language.STAGE_KEYS["placement"],
        },
    }
    required: list[Json] = [] if is_model else ["kind"]
    needed = [role for role in kind.roles if not role.optional]
    required += [role.name for role in needed if not role.aliases]
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
            "if": is_backend(backend.id, kind.name),
            "then": {"properties": {"options": _options_of(backend)}},
        }
        for backend in backends
        if len(backends) > 1
    ]
    narrowed += [
        {"anyOf": [{"required": [name]} for name in (role.name, *role.aliases)]}
        for role in needed
        if role.aliases
    ]
    if narrowed:
        schema["allOf"] = narrowed
    return schema


def _algorithm(kind: Kind, table: BackendTable) -> dict[str, Schema]:
    """The setting `algorithm` with what installed backends implement."""
    declared = next((each for each in table.fields_of(kind) if each.name == ALGORITHM), None)
    if declared is None:
        return {}
    published = field_schema(declared)
    shapes = published["anyOf"]
    assert isinstance(shapes, list)
    return {ALGORITHM: {**published, "anyOf": [*shapes, EXPRESSION, {"type": "null"}]}}


def _options_of(backend: StageBackend) -> Schema:
    doc = f"Settings of {backend.id}'s own" + ("." if backend.options else "; it has none.")
    return {
        "title": f"options of {backend.id}",
        "description": doc,
        **mapping_schema(backend.options),
    }


def _options(backends: Sequence[StageBackend]) -> Schema:
    """The options of every backend of a kind. A name that two declare differently is explained for
    each and its values are left to the branch of the backend that is named."""
    declared: dict[str, list[tuple[StageBackend, Field]]] = {}
    for backend in backends:
        for field in backend.options:
            declared.setdefault(field.name, []).append((backend, field))
    alike: list[Field] = []
    unlike: Schema = {}
    for name, owners in declared.items():
        if all(field == owners[0][1] for _, field in owners):
            alike.append(owners[0][1])
        else:
            docs = [f"{backend.id}: {field.doc}" for backend, field in owners]
            unlike[name] = {"description": " ".join(docs)}
    schema = mapping_schema(alike, unlike)
    return schema if len(backends) == 1 else {**schema, "required": []}


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


def _repeat() -> Schema:
    names: Schema = {"type": "array", "items": {"type": "string"}}
    carry: Schema = {
        "title": "carried name",
        "type": "object",
        "properties": {
            key: {"description": doc, "anyOf": [{"type": "string"}, names]}
            for key, doc in language.CARRY_KEYS.items()
        },
        "required": [*language.CARRY_KEYS],
        "additionalProperties": False,
    }
    inner: Schema = {
        "title": "rounds",
        "description": language.REPEAT_KEYS["repeat"],
        "type": "object",
        "properties": {
            "n": field_schema(language.ROUNDS),
            "until": field_schema(language.UNTIL),
            "carry": {
                **named_schema(carry),
                "description": language.REPEAT_INNER_KEYS["carry"],
            },
            "stages": {
                **named_schema(or_used("stage", {"$ref": "#/$defs/stage"})),
                "description": language.REPEAT_INNER_KEYS["stages"],
            },
        },
        "required": ["n", "stages"],
        "additionalProperties": False,
    }
    return {
        "title": "repeat",
        "type": "object",
        "properties": {"repeat": inner, "doc": text_schema(language.REPEAT_KEYS["doc"])},
        "required": ["repeat"],
        "additionalProperties": False,
    }


def _defaults() -> Schema:
    fragments: dict[str, list[Schema]] = {}
    for kind in KINDS:
        for field in kind.fields:
            published = field_schema(field, relaxed=True)
            known = fragments.setdefault(field.name, [])
            if published not in known:
                known.append(published)
    properties: Schema = {name: _any_of(known) for name, known in sorted(fragments.items())}
    properties |= {use: text_schema(doc) for use, doc in language.USES.items()}
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
    conversation: Schema = {"type": "array", "items": mapping_schema(language.MESSAGE_FIELDS)}
    return {"type": "array", "items": conversation, "description": language.EXAMPLES_DOC}


def _role(role: Role) -> Schema:
    shapes: list[Json] = [{"type": "string"}, PER_ROUND]
    if role.many:
        shapes.append({"type": "array", "items": {"type": "string"}, "minItems": 1})
    accepts = " or ".join(accepted.name for accepted in role.accepts)
    return {"description": f"{role.doc} Takes {accepts}.", "anyOf": shapes}


def _alias(role: Role) -> Schema:
    """An alias, which editors strike through."""
    return {**_role(role), "description": f"Alias of `{role.name}`.", "deprecated": True}


def _named_roles(role: Role) -> Schema:
    """Inputs that a stage gives names of its own."""
    return {"description": role.doc, **named_schema(_role(role))}


def _stage_name(kind: Kind) -> str:
    return f"stage_{kind.name}"
