"""Values for flipping fields: a valid sample of each, and valid values that differ from one."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from agentc.kinds.field import Field


def sample(field: Field) -> Any:
    """A valid value of a field that must be given."""
    return next(others(field, None))


def leaves(table: tuple[Field, ...], prefix: str = "") -> Iterator[tuple[str, Field, str]]:
    """(dotted path, field, identity class) of every leaf; a class holds for what is below it."""
    for field in table:
        path = f"{prefix}{field.name}"
        if field.fields:
            for inner, leaf, identity in leaves(field.fields, f"{path}."):
                yield inner, leaf, identity if field.identity == "semantic" else field.identity
        else:
            yield path, field, field.identity


def others(field: Field, value: Any) -> Iterator[Any]:
    """Valid values other than `value`."""
    schema = field.schema
    choices = schema.get("enum")
    if isinstance(choices, list):
        yield from (choice for choice in choices if choice not in (value, None))
        return
    types = schema.get("type", "string")
    match types[0] if isinstance(types, list) else types:
        case "boolean":
            # None lets the backend choose: either value may be what it chooses.
            yield from (True, False) if value is None else (not value,)
        case "integer":
            yield from _numbers(schema, value, 1)
        case "number":
            yield from _numbers(schema, value, 0.125)
        case "array":
            yield from ([item] for item in _items(schema) if [item] != value)
        case "object":
            yield {"--flag": "1"}
        case _:
            yield from (text for text in _texts(schema) if text != value)


def _numbers(schema: Mapping[str, Any], value: Any, step: float) -> Iterator[Any]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    base = value if isinstance(value, (int, float)) else low
    for candidate in (base * 2, base + step, base / 2, low + step, base + 64):
        whole = int(candidate) if schema["type"] == "integer" or step == 1 else candidate
        above = schema.get("exclusiveMinimum")
        fits = whole >= schema.get("minimum", whole) and whole <= schema.get("maximum", whole)
        if fits and whole != value and (above is None or whole > above):
            yield whole


def _items(schema: Mapping[str, Any]) -> list[Any]:
    items: Mapping[str, Any] = schema.get("items") or {}
    words = items.get("enum")
    return words if isinstance(words, list) else [_item(items)]


def _item(items: Mapping[str, Any]) -> Any:
    if items.get("type") == "object":
        return dict.fromkeys(items.get("required", ()), "sample")
    return items.get("minimum", 0) if items.get("type") == "integer" else "sample"


def _texts(schema: Mapping[str, Any]) -> Iterator[str]:
    pattern = schema.get("pattern", "")
    if "http" in pattern:
        yield from ("https://models.example/v1", "https://other.example/v1")
    elif "40" in pattern:
        yield from ("0123456789" * 4, "abcdef0123" * 4)
    else:
        yield from ("sample", "other")


def with_value(values: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one dotted path set."""
    result = copy.deepcopy(dict(values))
    node = result
    *groups, last = path.split(".")
    for name in groups:
        node = node.setdefault(name, {})
    node[last] = value
    return result


def value_at(values: Mapping[str, Any], path: str, field: Field) -> Any:
    """What is given at a path, else the default."""
    node: Any = values
    for part in path.split("."):
        if not isinstance(node, dict) or part not in node:
            return None if field.required else field.default
        node = node[part]
    return node
