"""param_rules: what values a declared param may have, as a JSON Schema fragment.

The front end (`evaluate_params`) and templates read their params by it.
"""

from __future__ import annotations

from agentc.diagnostics.sink import Sink
from agentc.kinds.field import Field, Json
from agentc.schema import language
from agentc.schema.coerce import Coercion, Failed
from agentc.schema.describe import describe
from agentc.source.scalars import is_expression
from agentc.source.tree import Entry, Scalar
from agentc.syntax.nodes import ParamDecl

_JSON_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
_FIELDS = {field.name: field for field in language.PARAM_FIELDS}


def param_rules(declared: ParamDecl, sink: Sink) -> dict[str, Json] | None:
    """The declaration as a JSON Schema fragment; None when it is broken."""
    name = declared.name.text
    settings: dict[str, Json] = {}
    for key, entry in declared.settings.items():
        if key == "default":
            continue
        value = _setting(entry, _FIELDS[key], f"{name}.{key}", sink)
        if isinstance(value, Failed):
            return None
        settings[key] = value
    kind = settings.get("type")
    if not isinstance(kind, str):
        return None
    item: dict[str, Json] = {}
    if kind != "list":
        item["type"] = _JSON_TYPES[kind]
    for key, keyword in (("min", "minimum"), ("max", "maximum")):
        bound = settings.get(key)
        if bound is None:
            continue
        if kind in ("bool", "str"):
            span = declared.settings[key].key.span
            sink.error("AGC203", f"a param of type {kind} has no `{key}`", span)
            return None
        item[keyword] = bound
    least, most = item.get("minimum"), item.get("maximum")
    if isinstance(least, (int, float)) and isinstance(most, (int, float)) and least > most:
        sink.error(
            "AGC205",
            f"no value of param `{name}` is possible: `min` {least} is above `max` {most}",
            declared.settings["min"].key.span,
            fix="exchange the two, or leave one out",
        )
        return None
    choices = settings.get("choices")
    if isinstance(choices, list):
        item["enum"] = choices
    if kind == "list" and ("minimum" in item or "maximum" in item):
        item["type"] = "number"
    return {"type": "array", "items": item} if kind == "list" else item


def _setting(entry: Entry, declared: Field, path: str, sink: Sink) -> Json | Failed:
    if isinstance(entry.value, Scalar) and is_expression(entry.value.text):
        sink.error(
            "AGC203",
            f"`{path}` cannot be an expression",
            entry.value.span,
            expected=describe(declared.schema),
        )
        return Coercion(Sink()).value(entry.value, {"type": "null"}, path)
    return Coercion(sink).field(entry.value, declared, path)
