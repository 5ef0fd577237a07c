"""Renders fields as lists in Markdown, for kinds, environments, servers and backend options."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agentc.kinds.field import Field
from agentc.reference.prose import item

_SIGNS = (
    ("minimum", ">="),
    ("exclusiveMinimum", ">"),
    ("maximum", "<="),
    ("exclusiveMaximum", "<"),
)


def field_list(fields: Iterable[Field]) -> list[str]:
    """Markdown lines of a list: one item for each field, nested ones by dotted path."""
    items = [line for declared in fields for line in _items(declared, "")]
    return items or ["No settings of its own."]


def type_text(schema: object) -> str:
    """A short reading of a JSON Schema fragment: `integer >= 1`, `"a" or "b"`."""
    if not isinstance(schema, dict):
        return "any"
    if "enum" in schema:
        return " or ".join(f"`{word}`" for word in schema["enum"])
    kinds = schema.get("type", "any")
    names = kinds if isinstance(kinds, list) else [kinds]
    text = " or ".join(str(name) for name in names)
    if names == ["array"]:
        text = f"list of {type_text(schema.get('items', {}))}"
    bounds = [f"{sign} {schema[word]}" for word, sign in _SIGNS if word in schema]
    return " ".join([text, *bounds])


def _items(declared: Field, prefix: str) -> list[str]:
    path = f"{prefix}{declared.name}"
    kind = "mapping" if declared.fields else type_text(dict(declared.schema))
    default = "**required**" if declared.required else f"default `{json.dumps(declared.default)}`"
    lines = item(f"`{path}`: {kind}; {default}; {declared.identity}. {declared.doc}")
    return lines + [line for sub in declared.fields for line in _items(sub, f"{path}.")]
