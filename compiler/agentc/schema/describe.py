"""Says in words what a JSON Schema fragment accepts: "a number greater than 0, or null"."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from agentc.kinds.field import HUB_ID, Field, Json
from agentc.kinds.metric_names import METRIC_NAMES, METRIC_PATTERN

_SINGULAR = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "`true` or `false`",
    "null": "null",
    "array": "a list",
    "object": "a mapping",
}
_PLURAL = {
    "string": "texts",
    "integer": "whole numbers",
    "number": "numbers",
    "boolean": "`true` or `false` values",
    "array": "lists",
    "object": "mappings",
}


ADDRESS = "^https?://"
"""What patterns of addresses begin with."""


def types_of(schema: Mapping[str, Json]) -> tuple[str, ...]:
    """The JSON types a fragment accepts; () when it names none and so accepts all."""
    declared = schema.get("type")
    if isinstance(declared, str):
        return (declared,)
    if isinstance(declared, list):
        return tuple(str(name) for name in declared)
    return ()


def describe(schema: Mapping[str, Json], fields: Sequence[Field] = ()) -> str:
    """What the fragment accepts, in words."""
    branches = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(branches, list):
        return " or ".join(describe(branch) for branch in branches if isinstance(branch, dict))
    choices = schema.get("enum")
    if isinstance(choices, list):
        shown = ", ".join(f"`{'null' if c is None else c}`" for c in choices if c is not None)
        text = f"one of {shown}" if len(choices) > 1 else shown
        return f"{text}, or null" if None in choices or "null" in types_of(schema) else text
    types = types_of(schema)
    if not types:
        return f"a value that fits {json.dumps(schema)}" if schema else "any value"
    words = [_singular(name, schema, fields) for name in types if name != "null"]
    if "null" in types:
        words.append("null")
    return ", or ".join(words)


def _singular(name: str, schema: Mapping[str, Json], fields: Sequence[Field]) -> str:
    if name in ("integer", "number"):
        return _SINGULAR[name] + _bounds(schema)
    if name == "string" and schema.get("pattern") == HUB_ID:
        return "a hub id of the form owner/name"
    if name == "string" and schema.get("pattern") == METRIC_PATTERN:
        return "one of " + ", ".join(f"`{name}`" for name in METRIC_NAMES)
    if name == "string" and isinstance(schema.get("pattern"), str):
        return _fitting(str(schema["pattern"]))
    items = schema.get("items")
    if name == "array" and isinstance(items, dict):
        if isinstance(items.get("enum"), list):
            return f"a list with {describe(items)}"
        inner = types_of(items)
        if len(inner) == 1 and inner[0] in _PLURAL:
            return f"a list of {_PLURAL[inner[0]]}{_bounds(items)}"
    if name == "object" and fields:
        return f"a mapping with {', '.join(f'`{field.name}`' for field in fields)}"
    return _SINGULAR.get(name, name)


def _fitting(pattern: str) -> str:
    """Of a pattern that is one text as it stands, the text."""
    if pattern.startswith(ADDRESS):
        return "an address that starts with `http://` or `https://`" + (
            ", without `?`, `#` and `@`" if "?#@" in pattern or "#?@" in pattern else ""
        )
    held = re.sub(r"\\([^A-Za-z0-9])", r"\1", pattern)
    if re.escape(held) == pattern:
        return f"text with `{held}` in it"
    return f"text of the form {pattern}"


def _bounds(schema: Mapping[str, Json]) -> str:
    least, most, above = (
        schema.get("minimum"),
        schema.get("maximum"),
        schema.get("exclusiveMinimum"),
    )
    below = schema.get("exclusiveMaximum")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    lower = f" of at least {least}" if least is not None else ""
    lower = f" greater than {above}" if above is not None else lower
    upper = f" of at most {most}" if most is not None else ""
    upper = f" less than {below}" if below is not None else upper
    return f"{lower} and{upper}" if lower and upper else lower + upper
