"""Coercion: values are read as the type that their place wants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc.diagnostics import Sink
from agentc.diagnostics.diagnostic import Source, Span
from agentc.kinds.field import REQUIRED, Field, Json, group, integer, number, string, strings
from agentc.schema.coerce import FAILED, Coercion, as_json
from agentc.schema.describe import describe
from agentc.source.load import load_text
from agentc.source.tree import Computed, Node

SPAN = Span(Source("x", ""), 1, 1, 1, 1)
_SET: dict[str, Json] = {
    "type": "array",
    "items": {"type": "string", "enum": ["a", "b", "c"]},
    "uniqueItems": True,
}


def node(text: str) -> Node:
    sink = Sink()
    found = load_text(Source("x.yaml", f"- {text}\n"), sink)
    assert found is not None, sink
    return found.items[0]  # type: ignore[union-attr]


def coerce(text: str, schema: dict[str, Json]) -> object:
    return Coercion(Sink()).value(node(text), schema, "x")


def trouble(text: str, schema: dict[str, Json]) -> tuple[str, str | None, str | None]:
    sink = Sink()
    assert Coercion(sink).value(node(text), schema, "x") is FAILED
    (found,) = sink.sorted()
    return found.code, found.expected, found.fix


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("2e-5", {"type": "number"}, 2e-5),
        ("2e-5", {"type": "string"}, "2e-5"),
        ("1_000", {"type": "integer"}, 1000),
        ("1_000", {"type": "string"}, "1_000"),
        ("3.0", {"type": "integer"}, 3),
        ("3", {"type": "number"}, 3),
        ("no", {"type": "string"}, "no"),
        ("on", {"type": "string", "enum": ["on", "off"]}, "on"),
        ("true", {"type": "string"}, "true"),
        ("true", {"type": "boolean"}, True),
        ("1.10", {"type": "string"}, "1.10"),
        ("null", {"type": ["integer", "null"]}, None),
        ("~", {"type": ["string", "null"]}, None),
        ("'null'", {"type": ["string", "null"]}, "null"),
        ("[a, 1, no]", {"type": "array", "items": {"type": "string"}}, ["a", "1", "no"]),
        ("[]", {"type": "array"}, []),
        ("[true, 1]", {"type": "array", "uniqueItems": True}, [True, 1]),
        ("{a: 1, b: [no]}", {"type": "object"}, {"a": 1, "b": ["no"]}),
        ("5", {"type": ["string", "integer"]}, 5),
        ("five", {"type": ["string", "integer"]}, "five"),
        ("5", {"anyOf": [{"type": "boolean"}, {"type": "integer"}]}, 5),
        ("x", {}, "x"),
        ("1e3", {}, 1000.0),
        ("2", {"enum": [1, 2]}, 2),
        ("7", {"multipleOf": 7}, 7),
    ],
)
def test_values(text: str, schema: dict[str, Json], value: object) -> None:
    found = coerce(text, schema)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "schema", "code", "expected"),
    [
        ("yes", {"type": "boolean"}, "AGC203", "`true` or `false`"),
        ("'5'", {"type": "integer"}, "AGC203", "a whole number"),
        ("", {"type": "string"}, "AGC203", "text"),
        ("null", {"type": "string"}, "AGC203", "text"),
        ("{a: 1}", {"type": "number"}, "AGC203", "a number"),
        ("0", {"type": "integer", "minimum": 1}, "AGC205", "a whole number of at least 1"),
        ("0", {"type": "number", "exclusiveMinimum": 0}, "AGC205", "a number greater than 0"),
        ("2", {"type": "number", "exclusiveMaximum": 2}, "AGC205", "a number less than 2"),
        ("b", {"type": "string", "enum": ["a"]}, "AGC204", "`a`"),
        ("b", {"type": "string", "pattern": "^a"}, "AGC210", "text of the form ^a"),
        ("b", {"type": "string", "pattern": r"\{x\}"}, "AGC210", "text with `{x}` in it"),
        ("ab", {"type": "string", "maxLength": 1}, "AGC205", "at most 1 character"),
        ("[]", {"type": "array", "minItems": 1}, "AGC205", "at least 1 item"),
        ("[a, b, a]", _SET, "AGC205", "each at most once"),
        ("[a, d]", _SET, "AGC204", "one of `a`, `b`, `c`"),
        ("a", _SET, "AGC203", "a list with one of `a`, `b`, `c`"),
        ("[1, a]", {"type": "array", "items": {"type": "integer"}}, "AGC203", "a whole number"),
        ("8", {"multipleOf": 7}, "AGC203", 'a value that fits {"multipleOf": 7}'),
        (
            "x",
            {"anyOf": [{"type": "null"}, {"type": "integer"}]},
            "AGC203",
            "null or a whole number",
        ),
    ],
)
def test_refusals(text: str, schema: dict[str, Json], code: str, expected: str) -> None:
    assert trouble(text, schema)[:2] == (code, expected)


def test_quotes_around_a_number_are_explained() -> None:
    assert trouble("'2e-5'", {"type": "number"})[2] == "remove the quotes: `2e-5`"
    assert trouble("~", {"type": "string"})[2] == 'write "~" in quotes if the text is meant'


@pytest.mark.parametrize(
    ("json", "schema", "value"),
    [
        (3, {"type": "number"}, 3),
        (3.0, {"type": "integer"}, 3),
        (True, {"type": "integer"}, FAILED),
        (True, {"type": "boolean"}, True),
        ("3", {"type": "integer"}, FAILED),
        (3, {"type": "string"}, "3"),
        ([1, 2.0], {"type": "array", "items": {"type": "integer"}}, [1, 2]),
        ([1, "x"], {"type": "array", "items": {"type": "integer"}}, FAILED),
        (None, {"type": ["integer", "null"]}, None),
        (None, {"type": "integer"}, FAILED),
    ],
)
def test_computed_values(json: Json, schema: dict[str, Json], value: object) -> None:
    assert Coercion(Sink()).value(Computed(json, SPAN), schema, "x") == value


DECODE = group(
    "decode",
    "",
    (
        number("temperature", "", 0.0, minimum=0),
        strings("stop", ""),
        string("mode", "", REQUIRED),
        group("inner", "", (integer("depth", "", 1),), nullable=True),
    ),
)


def test_groups_keep_what_is_given_and_where() -> None:
    coercion = Coercion(Sink())
    value = coercion.field(
        node("{mode: no, temperature: 1e0, stop: [a], inner: {depth: 2}}"), DECODE, "decode"
    )
    assert value == {"temperature": 1.0, "stop": ["a"], "mode": "no", "inner": {"depth": 2}}
    assert set(coercion.spans) == {
        "decode.mode",
        "decode.temperature",
        "decode.stop",
        "decode.stop.0",
        "decode.inner",
        "decode.inner.depth",
    }
    assert coercion.spans["decode.temperature"].column == 14


def test_groups_report_every_error() -> None:
    sink = Sink()
    text = "{temprature: 1, stop: x, inner: {depth: a}}"
    assert Coercion(sink).field(node(text), DECODE, "decode") is FAILED
    assert [found.code for found in sink.sorted()] == ["AGC202", "AGC201", "AGC203", "AGC203"]


def test_a_nullable_group_may_be_null_and_another_not() -> None:
    assert DECODE.fields[3].fields
    assert Coercion(Sink()).field(node("null"), DECODE.fields[3], "inner") is None
    assert Coercion(Sink()).field(node("null"), DECODE, "decode") is FAILED


scalars = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.none(), st.text())
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner)
)
fragments = st.sampled_from(
    [
        {"type": "integer", "minimum": 0},
        {"type": ["number", "null"]},
        {"type": "string", "pattern": "a"},
        {"type": "array", "items": {"type": "boolean"}},
        {"type": "object"},
        {"type": "string", "enum": ["a", "b"]},
        {"anyOf": [{"type": "null"}, {"type": "array"}]},
        {"not": {"type": "string"}},
        {},
    ]
)


@given(documents, fragments)
def test_what_comes_out_fits_the_fragment(document: Json, schema: dict[str, Json]) -> None:
    from jsonschema import Draft202012Validator

    sink = Sink()
    value = Coercion(sink).value(Computed(document, SPAN), schema, "x")
    assert (value is FAILED) == sink.has_errors
    if value is not FAILED:
        assert Draft202012Validator(schema).is_valid(value)


@given(fragments)
def test_every_fragment_can_be_described(schema: dict[str, Json]) -> None:
    assert describe(schema)


def test_as_json_reads_trees_plainly() -> None:
    assert as_json(node("{a: [1e3, no, ~], b: '1'}")) == {"a": [1000.0, "no", None], "b": "1"}


def test_fields_of_third_parties_may_use_any_keyword() -> None:
    field = Field(
        name="shape",
        schema={"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        doc="",
    )
    assert Coercion(Sink()).field(node("[1, a]"), field, "shape") == [1, "a"]
    assert Coercion(Sink()).field(node("[a, 1]"), field, "shape") is FAILED
