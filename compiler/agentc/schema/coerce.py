"""Turns nodes into JSON values, directed by the type that is wanted at their place.

Text is read as the wanted type (`scalars.py`), groups by their fields, anything a fragment says
beyond that by `jsonschema`, which is imported only then (it costs a third of `agentc check`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Table
from dataclasses import dataclass, field

from agentc.diagnostics.diagnostic import Source, Span, split_lines
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean
from agentc.kinds.field import SECRET, SECRET_NAME, Field, Json, is_secret
from agentc.schema.describe import describe, types_of
from agentc.schema.keys import Place, read_keys
from agentc.schema.language import PER_ROUND
from agentc.schema.remedy import Several, advice, bounds_in_words, fits, fitting_text, range_note
from agentc.source.scalars import (
    FAILED,
    LARGEST_INTEGER,
    Failed,
    is_null,
    plain_value,
    read_scalar,
)
from agentc.source.tree import Computed, Entry, Mapping, Node, Scalar, Sequence, Unknown, described

__all__ = ["FAILED", "Coercion", "Failed", "as_json", "hidden", "referred_secret"]

_UNDERSTOOD = frozenset(
    {
        "type",
        "enum",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "pattern",
        "minLength",
        "maxLength",
        "items",
        "minItems",
        "maxItems",
        "uniqueItems",
        "anyOf",
        "oneOf",
        "title",
        "description",
        "default",
        "examples",
    }
)


_SHORT = 100
"""A longer text about a field says nothing to somebody who has misspelt its value."""


@dataclass(slots=True)
class Coercion:
    """Collects the places of nested values while coercing. `spans` maps a dotted path to the
    place of its key (for a list item, of the item). `several` says how a stage gets several values
    of a setting: one for each round, or by a sweep."""

    sink: Sink
    steps: tuple[str, ...] = ()
    several: Several | None = None
    spans: dict[str, Span] = field(default_factory=dict)

    def field(self, node: Node, declared: Field, path: str) -> Json | Failed:
        """The value of a declared field, or FAILED."""
        if not declared.fields:
            return self.value(node, declared.schema, path, declared.doc)
        if isinstance(node, Unknown):
            return FAILED
        if _reads_null(node) and "null" in types_of(declared.schema):
            return None
        if is_secret(declared):
            return self._secret(node, path)
        if not isinstance(node, Mapping):
            self._wrong(node, path, describe(declared.schema, declared.fields))
            return FAILED
        return self.group(node, declared.fields, path)

    def group(self, node: Mapping, fields: tuple[Field, ...], path: str) -> Json | Failed:
        """A mapping with known keys: what is given, without defaults."""
        place = Place(path, f"`{path}`", self.steps)
        allowed = {inner.name: inner for inner in fields}
        required = [inner.name for inner in fields if inner.required]
        entries = read_keys(node, allowed, place, self.sink, required=required)
        values: dict[str, Json] = {}
        failed = any(entry.key.text not in allowed for entry in node.entries)
        for inner in fields:
            entry = entries.get(inner.name)
            if entry is None:
                failed |= inner.required
                if inner.required and not node.partial:
                    self.sink.error(
                        "AGC202",
                        f"`{path}` needs `{inner.name}`",
                        node.span,
                        expected=f"`{inner.name}`: {describe(inner.schema)}",
                        steps=self.steps,
                    )
                continue
            inner_path = f"{path}.{inner.name}"
            self.spans[inner_path] = entry.key.span
            value = self.field(entry.value, inner, inner_path)
            if isinstance(value, Failed):
                failed = True
            else:
                values[inner.name] = value
        return FAILED if failed else values

    def _secret(self, node: Node, path: str) -> Json | Failed:
        """The reference `{secret: NAME}`; anything else may be the secret, and is not shown."""
        name = referred_secret(node)
        if name is not None and re.fullmatch(SECRET_NAME[1:-1], name):
            return {SECRET: name}
        text = node.text if isinstance(node, Scalar) else ""
        looks_like_name = re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", text) is not None
        self.sink.error(
            "AGC322",
            f"`{path}` takes a secret by reference, never the secret itself",
            hidden(node.span),
            expected="`{secret: NAME}`, with the name of an environment variable in capitals",
            fix=f"write `{path}: {{{SECRET}: {text if looks_like_name else 'NAME'}}}`",
            steps=self.steps,
        )
        return FAILED

    def value(
        self, node: Node, schema: Table[str, Json], path: str, doc: str = ""
    ) -> Json | Failed:
        """The value of a node where a schema fragment is wanted, or FAILED. `doc` says what the
        fragment means, for messages about its pattern."""
        if isinstance(node, Unknown):
            return FAILED
        if referred_secret(node) is not None and "object" not in types_of(schema):
            self.sink.error(
                "AGC320",
                f"`{path}` cannot hold a secret",
                node.span,
                notes=("its value would be written into the plan and the store",),
                fix="give the value itself, if it may be seen by everybody",
                steps=self.steps,
            )
            return FAILED
        if not _UNDERSTOOD.issuperset(schema):
            return self._by_jsonschema(node, schema, path)
        branches = schema.get("anyOf", schema.get("oneOf"))
        if isinstance(branches, list):
            return self._one_of(node, [b for b in branches if isinstance(b, dict)], schema, path)
        types = types_of(schema)
        if not types:
            if "enum" in schema:
                return self._checked(as_json(node), node, schema, path)
            return as_json(node)
        value = self._typed(node, types, schema, path)
        if isinstance(value, Failed):
            return value
        return self._checked(value, node, schema, path, doc)

    def _typed(
        self, node: Node, types: tuple[str, ...], schema: Table[str, Json], path: str
    ) -> Json | Failed:
        match node:
            case Scalar():
                value = read_scalar(node, types)
            case Computed(json=computed):
                value = _fitting(computed, types)
                if isinstance(value, list):
                    node = Sequence(tuple(Computed(item, node.span) for item in value), node.span)
                    return self._items(node, schema, path)
            case Sequence() if "array" in types:
                return self._items(node, schema, path)
            case Mapping() if "object" in types:
                return as_json(node)
            case _:
                value = FAILED
        if isinstance(value, Failed):
            self._wrong(node, path, describe(schema), types)
        return value

    def _items(self, node: Sequence, schema: Table[str, Json], path: str) -> Json | Failed:
        inner = schema.get("items")
        values: list[Json] = []
        failed = False
        for index, item in enumerate(node.items):
            self.spans[f"{path}.{index}"] = item.span
            value = self.value(item, inner if isinstance(inner, dict) else {}, f"{path}.{index}")
            if isinstance(value, Failed):
                failed = True
            elif schema.get("uniqueItems") and any(_same(value, each) for each in values):
                self.sink.error(
                    "AGC205",
                    f"`{path}` names {described(item)} twice",
                    item.span,
                    expected="each at most once",
                    steps=self.steps,
                )
                failed = True
            else:
                values.append(value)
        return FAILED if failed else values

    def _one_of(
        self, node: Node, branches: list[dict[str, Json]], schema: Table[str, Json], path: str
    ) -> Json | Failed:
        for branch in branches:
            trial = Coercion(Sink(), self.steps, several=self.several)
            value = trial.value(node, branch, path)
            if not isinstance(value, Failed):
                self.spans.update(trial.spans)
                return value
        self._wrong(node, path, describe(schema))
        return FAILED

    def _checked(
        self, value: Json, node: Node, schema: Table[str, Json], path: str, doc: str = ""
    ) -> Json | Failed:
        """Choices, bounds and patterns of a value that is of the right type."""
        if value is None and "null" in types_of(schema):
            return value
        choices = schema.get("enum")
        if isinstance(choices, list) and value not in choices:
            self.sink.error(
                "AGC204",
                f"`{path}` cannot be {described(node)}",
                node.span,
                expected=describe(schema),
                fix=did_you_mean(str(value), [str(choice) for choice in choices]),
                steps=self.steps,
            )
            return FAILED
        pattern = schema.get("pattern")
        if isinstance(value, str) and isinstance(pattern, str) and not fits(pattern, value):
            fix = fitting_text(pattern, value)
            self.sink.error(
                "AGC210",
                f"`{path}` cannot be {described(node) if value else 'empty'}",
                node.span,
                expected=describe(schema),
                notes=(doc,) if doc and (fix is None or len(doc) < _SHORT) else (),
                fix=fix,
                steps=self.steps,
            )
            return FAILED
        if not _within(value, schema):
            empty = value in ("", [])
            self.sink.error(
                "AGC205",
                f"`{path}` cannot be {'empty' if empty else described(node)}",
                node.span,
                expected=bounds_in_words(value, schema),
                notes=(doc,) if doc and empty and len(doc) < _SHORT else (),
                fix="leave it out"
                if empty and "null" in types_of(schema)
                else _share(value, schema),
                steps=self.steps,
            )
            return FAILED
        return value

    def _by_jsonschema(self, node: Node, schema: Table[str, Json], path: str) -> Json | Failed:
        from agentc.schema.fragments import report_misfits

        value = as_json(node)
        return FAILED if report_misfits(node, value, schema, path, self.sink, self.steps) else value

    def _wrong(self, node: Node, path: str, expected: str, types: tuple[str, ...] = ()) -> None:
        if isinstance(node, Mapping) and len(node.entries) == 1:
            key = node.entries[0].key
            near = did_you_mean(key.text, [PER_ROUND])
            if near is not None:
                message = f"unknown key `{key.text}` in `{path}`"
                self.sink.error("AGC201", message, key.span, fix=near, steps=self.steps)
                return
        self.sink.error(
            "AGC203",
            f"`{path}` cannot be {described(node)}",
            node.span,
            expected=expected,
            notes=range_note(node, types),
            fix=advice(node, types, path, self.several),
            steps=self.steps,
        )


def referred_secret(node: Node) -> str | None:
    """The name in `{secret: NAME}` or `{{ secret('NAME') }}`; None for anything else."""
    match node:
        case Mapping(entries=(Entry(key=Scalar(text="secret"), value=Scalar(text=name)),)):
            return name
        case Computed(json={"secret": str(name)}):
            return name
    return None


def hidden(span: Span) -> Span:
    """The same place in a copy of the source that has nothing to read there."""
    lines = split_lines(span.source.text)
    for number in range(span.line, min(span.end_line, len(lines)) + 1):
        line = lines[number - 1]
        start = span.column - 1 if number == span.line else 0
        end = span.end_column - 1 if number == span.end_line else len(line)
        lines[number - 1] = line[:start] + "*" * len(line[start:end]) + line[end:]
    source = Source(span.source.name, "\n".join(lines))
    return Span(source, span.line, span.column, span.end_line, span.end_column)


def as_json(node: Node) -> Json:
    """The plain meaning of a tree (YAML 1.2's core schema), where no type is wanted."""
    match node:
        case Scalar():
            return plain_value(node)
        case Computed(json=computed):
            return computed
        case Sequence(items=items):
            return [as_json(item) for item in items]
        case Mapping(entries=entries):
            return {entry.key.text: as_json(entry.value) for entry in entries}
        case Unknown():
            return None


def _fitting(value: Json, types: tuple[str, ...]) -> Json | Failed:
    """A computed value as one of the wanted types."""
    match value:
        case None if "null" in types:
            return None
        case bool():
            return value if "boolean" in types else FAILED
        case int() if "number" in types or ("integer" in types and abs(value) <= LARGEST_INTEGER):
            return value
        case float() if "number" in types:
            return value
        case float() if "integer" in types and value.is_integer() and abs(value) < 2**53:
            return int(value)
        case str() if "string" in types:
            return value
        case int() | float() if "string" in types:
            return str(value)
        case list() if "array" in types:
            return value
    return FAILED


def _reads_null(node: Node) -> bool:
    match node:
        case Scalar(text=text, quoted=False):
            return is_null(text)
        case Computed(json=None):
            return True
    return False


def _within(value: Json, schema: Table[str, Json]) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, (int, float)):
        least, most = schema.get("minimum"), schema.get("maximum")
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        return not (
            (isinstance(least, (int, float)) and value < least)
            or (isinstance(most, (int, float)) and value > most)
            or (isinstance(above, (int, float)) and value <= above)
            or (isinstance(below, (int, float)) and value >= below)
        )
    keys = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
    if isinstance(value, (str, list)):
        shortest, longest = schema.get(keys[0]), schema.get(keys[1])
        return not (
            (isinstance(shortest, int) and len(value) < shortest)
            or (isinstance(longest, int) and len(value) > longest)
        )
    return True


def _share(value: Json, schema: Table[str, Json]) -> str | None:
    """Help for a percentage where a share from 0 to 1 is wanted."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or schema.get("maximum") != 1:
        return None
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    is_percentage = 2 <= value <= 100 and least == 0 and "integer" not in types_of(schema)
    return f"write `{value / 100:g}`, if {value:g} % is meant" if is_percentage else None


def _same(one: Json, other: Json) -> bool:
    """Equality as JSON Schema has it: `true` is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
