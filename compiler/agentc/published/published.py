"""Publishes declared fields as JSON Schema: what the compiler reads at the place of a value, such
as an expression or a value for each round, stands beside the field's own fragment.

Neighbours: `json_schema.py` makes the whole of these, `used.py` the part about templates.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentc.kinds.field import Field, Json, is_secret
from agentc.schema import language
from agentc.schema.describe import types_of

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
