"""Plain scalars mean what a researcher means by them, not what YAML 1.1 makes of them."""

from __future__ import annotations

from datetime import date

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentc.diagnostics.diagnostic import Source, Span
from agentc.schema.remedy import advise
from agentc.source.scalars import (
    plain_value,
    read_boolean,
    read_integer,
    read_number,
)
from agentc.source.tree import Scalar

SPAN = Span(Source("x", ""), 1, 1, 1, 1)


def plain(text: str) -> object:
    return plain_value(Scalar(text, False, SPAN))


@pytest.mark.parametrize(
    ("text", "meant", "pyyaml"),
    [
        ("2e-5", 2e-5, "2e-5"),
        ("1e3", 1000.0, "1e3"),
        ("1_000", 1000, 1000),
        ("1_000.5", 1000.5, 1000.5),
        ("010", 10, 8),
        ("no", "no", False),
        ("on", "on", True),
        ("yes", "yes", True),
        ("Off", "Off", False),
        ("1:30", "1:30", 90),
        ("12:30:45", "12:30:45", 45045),
        ("2024-03-04", "2024-03-04", date(2024, 3, 4)),
        (".5", 0.5, 0.5),
        ("5.", 5.0, 5.0),
        ("+3", 3, 3),
        ("0x1F", 31, 31),
        ("0o17", 15, "0o17"),
        ("true", True, True),
        ("~", None, None),
        ("1e999", "1e999", "1e999"),
        (".inf", ".inf", float("inf")),
        ("1__0", "1__0", 10),
        ("1_", "1_", 1),
        ("_1", "_1", "_1"),
        ("1e", "1e", "1e"),
        ("٣", "٣", "٣"),
        ("1 000", "1 000", "1 000"),
    ],
)
def test_traps(text: str, meant: object, pyyaml: object) -> None:
    value = plain(text)
    assert value == meant
    assert type(value) is type(meant)
    assert yaml.safe_load(text) == pyyaml  # so that the table says what the trap is


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e4", 10_000), ("3.0", 3), ("1_024", 1024), ("2.5e1", 25), ("-0", 0), ("1e15", 10**15)],
)
def test_integers(text: str, value: int) -> None:
    read = read_integer(text)
    assert read == value
    assert type(read) is int


@pytest.mark.parametrize("text", ["3.5", "1e-3", "nan", "1e300", "", "--1", "1,000", "ten"])
def test_not_integers(text: str) -> None:
    assert read_integer(text) is None


def test_only_true_and_false_are_booleans() -> None:
    assert [read_boolean(word) for word in ("true", "False", "yes", "1", "on", "tRue")] == [
        True,
        False,
        None,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("text", "wanted", "advice"),
    [
        ("1,000", "number", "write `1_000`"),
        ("0,5", "number", "write `0.5`, with a decimal point"),
        ("0,002", "number", "write `0.002`, with a decimal point"),
        ("0,0001", "integer", "write `0.0001`, with a decimal point"),
        ("1,024", "number", "write `1.024` for a decimal point, or `1_024` for thousands"),
        ("1,024", "integer", "write `1_024`"),
        ("10⁻⁶", "number", "write `1e-6`"),
        ("½", "number", "write `0.5`"),
        ("2 e-5", "number", "write `2e-5`"),
        ("1/8", "number", "write `0.125`"),
        ("4k tokens", "integer", "write `4000`"),
        ("${rate}", "number", 'write "{{ rate }}", with the quotes'),
        ("3%", "number", "write `0.03`"),
        ("4k", "number", "write `4000`"),
        ("7B", "number", "write `7000000000`"),
        ("5 x 10^-4", "number", "write `5e-4`"),
        ("1e\N{MINUS SIGN}5", "number", "write `1e-5`, with an ordinary minus sign"),
        ("inf", "number", "a number has to be finite"),
        ("fast", "number", None),
        ("No", "boolean", "write `false`"),
        ("maybe", "boolean", None),
        ("None", "null", "write `null`"),
    ],
)
def test_advice(text: str, wanted: str, advice: str | None) -> None:
    assert advise(text, wanted) == advice  # type: ignore[arg-type]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_that_python_writes_is_read_back(value: float) -> None:
    assert read_number(repr(value)) == value


@given(st.integers(min_value=-(10**50), max_value=10**50))
def test_every_integer_is_read_back_with_and_without_separators(value: int) -> None:
    assert read_integer(str(value)) == value
    assert read_integer(f"{value:_}") == value
    assert plain(f"{value:_}") == value


@given(st.text())
def test_readers_never_raise(text: str) -> None:
    value = plain(text)
    assert value is None or isinstance(value, (bool, int, float, str))
    for wanted in ("number", "boolean", "null"):
        advise(text, wanted)  # type: ignore[arg-type]
