"""Where a value does not fit a fragment of JSON Schema that `coerce.py` does not read by itself, as
errors at the places that were written. Imports `jsonschema`: only when there is such a fragment."""

from __future__ import annotations

from collections.abc import Mapping as Table
from collections.abc import Sequence as Row

from jsonschema import Draft202012Validator, ValidationError

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean
from agentc.kinds.field import Json
from agentc.schema.describe import describe
from agentc.schema.remedy import bounds_in_words
from agentc.source.tree import Mapping, Node, Sequence, described

_SIZES = ("minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength")


def report_misfits(
    node: Node,
    value: Json,
    schema: Table[str, Json],
    path: str,
    sink: Sink,
    steps: tuple[str, ...] = (),
) -> bool:
    """Whether `value`, which is what `node` says, does not fit. A key that is not allowed gets the
    nearest one that is; what may be missing for its sake is not reported beside it."""
    errors = list(Draft202012Validator(dict(schema)).iter_errors(value))
    misspelt = [error for error in errors if error.validator == "additionalProperties"]
    elsewhere = [tuple(error.absolute_path) for error in misspelt]
    for error in misspelt:
        _unknown_keys(error, node, path, sink, steps)
    for error in errors:
        steps_down = tuple(error.absolute_path)
        if error in misspelt or (error.validator == "required" and steps_down in elsewhere):
            continue
        here, name = _at(node, steps_down), ".".join(map(str, (path, *steps_down)))
        if error.validator == "required":
            missing = next(key for key in error.validator_value if key not in error.instance)
            sink.error("AGC202", f"`{name}` needs `{missing}`", here.span, steps=steps)
        elif "propertyNames" in error.absolute_schema_path:
            entry = here.find(str(error.instance)) if isinstance(here, Mapping) else None
            sink.error(
                "AGC210",
                f"a key of `{name}` cannot be `{error.instance}`",
                here.span if entry is None else entry.key.span,
                expected=_in_words({"type": "string"}, error),
                steps=steps,
            )
        elif error.validator in _SIZES:
            empty = not error.instance
            sink.error(
                "AGC203",
                f"`{name}` cannot be {'empty' if empty else described(here)}",
                here.span,
                expected=_sized(error),
                steps=steps,
            )
        else:
            sink.error(
                "AGC203",
                f"`{name}` cannot be {described(here)}",
                here.span,
                expected=_in_words({}, error),
                steps=steps,
            )
    return bool(errors)


def _unknown_keys(
    error: ValidationError, node: Node, path: str, sink: Sink, steps: tuple[str, ...]
) -> None:
    place = tuple(error.absolute_path)
    here, name = _at(node, place), ".".join(map(str, (path, *place)))
    assert isinstance(error.schema, Table)
    assert isinstance(error.instance, Table)
    allowed = sorted(error.schema.get("properties", ()))
    for key in error.instance:
        if key in allowed:
            continue
        entry = here.find(key) if isinstance(here, Mapping) else None
        near = did_you_mean(key, allowed)
        sink.error(
            "AGC201",
            f"unknown key `{key}` in `{name}`",
            here.span if entry is None else entry.key.span,
            expected=None if near else "one of " + ", ".join(f"`{each}`" for each in allowed),
            fix=near,
            steps=steps,
        )


def _in_words(known: Table[str, Json], error: ValidationError) -> str:
    return describe({**known, **error.schema} if isinstance(error.schema, Table) else known)


def _sized(error: ValidationError) -> str:
    """What is wanted in the place of a mapping, list or text of another size."""
    schema = error.schema if isinstance(error.schema, Table) else {}
    size: Json = error.instance  # type: ignore[assignment]
    return f"{describe(schema)} with {bounds_in_words(size, schema)}"


def _at(node: Node, place: Row[str | int]) -> Node:
    """The node at a place within, or the nearest around it that was written."""
    for step in place:
        inner: Node | None = None
        if isinstance(node, Mapping) and (entry := node.find(str(step))) is not None:
            inner = entry.value
        elif isinstance(node, Sequence) and isinstance(step, int):
            inner = node.items[step]
        if inner is None:
            break
        node = inner
    return node
