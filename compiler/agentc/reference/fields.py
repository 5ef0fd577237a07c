"""Renders tables of fields as Markdown, for kinds, environments, servers and backend options."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agentc.kinds.field import Field

_SIGNS = (
    ("minimum", ">="),
    ("exclusiveMinimum", ">"),
    ("maximum", "<="),
    ("exclusiveMaximum", "<"),
)


def field_table(fields: Iterable[Field]) -> list[str]:
    """Markdown lines of a table: one row for each field, nested ones by dotted path."""
    rows = [row for declared in fields for row in _rows(declared, "")]
    if not rows:
        return ["No settings of its own."]
    return ["| key | type | default | class | meaning |", "|---|---|---|---|---|", *rows]


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


def _rows(declared: Field, prefix: str) -> list[str]:
    path = f"{prefix}{declared.name}"
    if declared.fields:
        head = (
            f"| `{path}` | mapping | {_default(declared)} | {declared.identity} | {declared.doc} |"
        )
        nested = [row for sub in declared.fields for row in _rows(sub, f"{path}.")]
        return [head, *nested]
    return [
        f"| `{path}` | {type_text(dict(declared.schema))} | {_default(declared)} "
        f"| {declared.identity} | {declared.doc} |"
    ]


def _default(declared: Field) -> str:
    if declared.required:
        return "**required**"
    return f"`{json.dumps(declared.default)}`"
