"""Fragments of the published JSON Schema that `json_schema.py` puts together: declared fields, with
an expression or a value for each round at the place of a value; `use:` of a template; and what
depends on a backend."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from agentc.backend_api import EnvironmentBackend, ServerBackend, StageBackend
from agentc.kinds.field import REQUIRED, Field, Json, is_secret
from agentc.schema import language
from agentc.schema.coerce import as_json
from agentc.schema.describe import types_of
from agentc.source.tree import Mapping as MappingNode
from agentc.source.tree import Scalar
from agentc.templates.library import Template, shipped_templates

Schema = dict[str, Json]

EXPRESSION: Schema = {"$ref": "#/$defs/expression"}
PER_ROUND: Schema = {"$ref": "#/$defs/per_round"}
_GROUPED: Schema = {"$ref": "#/$defs/grouped_number"}
DEFINITIONS: Schema = {
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
            language.PER_ROUND: {"anyOf": [{"type": "array", "minItems": 1}, EXPRESSION]}
        },
        "required": [language.PER_ROUND],
        "additionalProperties": False,
    },
}


def named_schema(values: Schema) -> Schema:
    """A section: names to declarations."""
    return {
        "type": ["object", "null"],
        "propertyNames": {"pattern": language.NAME_PATTERN},
        "additionalProperties": values,
    }


def mapping_schema(fields: Sequence[Field], extra: Schema | None = None) -> Schema:
    """A mapping with declared fields, and no others; `extra` are further properties."""
    return {
        "type": "object",
        "properties": {**{field.name: field_schema(field) for field in fields}, **(extra or {})},
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }


def field_schema(field: Field, relaxed: bool = False) -> Schema:
    """A field as a property: its fragment, or an expression, or a value for each round."""
    if field.fields:
        fragment = mapping_schema(field.fields)
        if "null" in types_of(field.schema):
            fragment["type"] = ["object", "null"]
        shapes: list[Json] = [fragment, PER_ROUND]
        if is_secret(field):
            shapes.append(EXPRESSION)
    else:
        fragment = dict(field.schema)
        shapes = [fragment, PER_ROUND]
        types = types_of(fragment)
        if set(types) & {"integer", "number"}:
            shapes.append(_GROUPED)
        if types:
            shapes.append(EXPRESSION)
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


def text_schema(doc: str) -> Schema:
    """A text, explained."""
    return {"type": "string", "description": doc}


def use_properties(makes: str) -> Schema:
    """`use`, `with` and `append`, where a template makes a `makes`."""
    fitting = [template for template in shipped_templates() if template.makes == makes]
    names: list[Json] = [template.name for template in fitting]
    docs: list[Json] = [template.doc for template in fitting]
    shapes: list[Json] = [{"type": "string", "pattern": r"^\.{1,2}/"}]
    if names:
        shapes.insert(0, {"enum": names, "enumDescriptions": docs})
    return {
        "use": {"description": language.USE_KEYS["use"], "anyOf": shapes},
        "with": {"type": "object", "description": language.USE_KEYS["with"]},
        "append": {"type": "object", "description": language.USE_KEYS["append"]},
    }


def or_used(makes: str, plain: Schema) -> Schema:
    """A declaration written out, or one from a template."""
    return {
        # Editors offer it before it is known which of the two an entry becomes.
        "properties": {"use": use_properties(makes)["use"]},
        "if": {"required": ["use"]},
        "then": {"$ref": f"#/$defs/{used_name(makes)}"},
        "else": plain,
    }


def used_name(makes: str) -> str:
    """The name of a definition: a declaration from a template."""
    return f"used_{makes}"


def used_schema(makes: str, keys: Mapping[str, Schema]) -> Schema:
    """A declaration from a template. `keys` are the properties of a declaration written out; of
    a stage by kind, else under ""."""
    branches: list[Json] = [
        {
            "if": {"properties": {"use": {"const": template.name}}, "required": ["use"]},
            "then": _narrowed(template, keys),
        }
        for template in shipped_templates()
        if template.makes == makes
    ]
    schema: Schema = {
        "title": f"{makes} from a template",
        "type": "object",
        "properties": use_properties(makes),
        "required": ["use"],
    }
    return {**schema, "allOf": branches} if branches else schema


def _narrowed(template: Template, keys: Mapping[str, Schema]) -> Schema:
    fields = [
        Field(
            name=param.name,
            schema=param.rules,
            doc=param.doc or "",
            default=REQUIRED if param.default is None else as_json(param.default),
        )
        for param in template.params.values()
    ]
    taken: Schema = {"description": template.doc, **mapping_schema(fields)}
    title = f"from template {template.name}"
    required: list[Json] = ["with"] if any(field.required for field in fields) else []
    beside = _beside(template, keys)
    if beside is None:
        return {"title": title, "properties": {"with": taken}, "required": required}
    allowed = {**beside, **use_properties(template.makes), "with": taken}
    return {
        "title": title,
        "properties": allowed,
        "required": required,
        "additionalProperties": False,
    }


def _beside(template: Template, keys: Mapping[str, Schema]) -> Schema | None:
    """The keys that may stand beside `use`, or None when the body does not say by itself."""
    body = {entry.key.text: entry.value for entry in template.body.entries}
    if "use" in body:
        return None
    kind, repeat = body.get("kind"), body.get("repeat")
    if isinstance(kind, Scalar):
        return keys.get(kind.text)
    if isinstance(repeat, MappingNode):
        inner: Schema = {
            key: {"description": doc} for key, doc in language.REPEAT_INNER_KEYS.items()
        }
        rounds: Schema = {
            "type": "object",
            "description": language.REPEAT_KEYS["repeat"],
            "properties": inner,
            "additionalProperties": False,
        }
        return {"repeat": rounds, "doc": text_schema(language.REPEAT_KEYS["doc"])}
    return keys.get("")


def dispatch(key: str, properties: Schema, branches: list[Json]) -> Schema:
    """A mapping whose other keys depend on one of them."""
    return {
        "type": "object",
        "properties": properties,
        "required": [key],
        "allOf": branches,
        "description": f"Which keys there are depends on `{key}`.",
    }


def resource_entries(
    what: str, backends: Sequence[EnvironmentBackend] | Sequence[ServerBackend]
) -> Schema:
    """An entry of a section, by its backend."""
    if not backends:
        return {"type": "object", "required": ["backend"]}
    family = backends[0].id.split(".")[0]
    branches: list[Json] = [
        {
            "if": is_backend(each.id, family),
            "then": {"$ref": f"#/$defs/{resource_name(each.id)}"},
        }
        for each in backends
    ]
    names: Schema = {"backend": backend_names(backends, family, {})}
    return {"title": what, **dispatch("backend", names, branches)}


def is_backend(backend: str, family: str) -> Schema:
    """The condition that an entry or a stage names this backend, long or short."""
    names: list[Json] = [backend, *_short(backend, family)]
    return {"properties": {"backend": {"enum": names}}, "required": ["backend"]}


def backend_names(
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
            EXPRESSION,
            PER_ROUND,
        ],
    }


def _short(backend: str, family: str) -> tuple[str, ...]:
    for short in (backend.removesuffix(f".{family}"), backend.removeprefix(f"{family}.")):
        if short != backend:
            return (short,)
    return ()


def resource_name(backend: str) -> str:
    """Of its definition."""
    return f"resource_{backend.replace('.', '_')}"
