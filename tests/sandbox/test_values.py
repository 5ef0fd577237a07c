"""Values through the channel: what is written in a box is read outside, and nothing else is."""

from __future__ import annotations

import math
from array import array
from collections import (
    ChainMap,
    Counter,
    OrderedDict,
    UserDict,
    UserList,
    UserString,
    defaultdict,
    deque,
    namedtuple,
)
from contextlib import suppress
from copy import deepcopy
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from http import HTTPStatus
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc_backends.environments.code_tests import boxed_calls
from agentc_backends.environments.code_tests.suite import code_of
from agentc_backends.environments.code_tests.values import (
    MalformedValueError,
    OpaqueValue,
    equal,
    equals_nothing,
    read_value,
)

_PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(st.characters()),
    st.binary(),
)
_KEYS = st.recursive(
    _PLAIN, lambda inner: st.one_of(st.tuples(inner), st.frozensets(inner)), max_leaves=4
)
_VALUES = st.recursive(
    st.one_of(_PLAIN, st.sets(_KEYS)),
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner, inner), st.dictionaries(_KEYS, inner)
    ),
    max_leaves=12,
)


def _sent(value: Any) -> Any:
    return read_value(boxed_calls._encode(value, 1 << 20).encode("ascii"))


def _types(value: Any) -> Any:
    if isinstance(value, dict):
        return [(_types(key), _types(each)) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [type(value), *map(_types, value)]
    return type(value)


@given(_VALUES)
def test_values_come_back_as_they_were(value: Any) -> None:
    back = _sent(value)
    assert equal(back, value)
    assert _types(back) == _types(value)
    assert not equals_nothing(back)


class _Yes:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class _Three(_Yes, int):
    __class__ = int  # type: ignore[assignment]


def test_what_has_no_value_is_opaque() -> None:
    for value in (object(), _Yes(), [_Yes()], {1: (object(),)}, float("nan"), [float("nan")]):
        assert equals_nothing(_sent(value))
        assert not equal(_sent(value), _sent(value))
    assert isinstance(_sent(_Yes()), OpaqueValue)


def test_what_claims_to_equal_everything_equals_what_its_base_does() -> None:
    assert _Three(3) == "anything"
    assert [equal(_sent(_Three(3)), other) for other in (3, 3.0, 4, "3", _sent(_Yes()))] == [
        True, True, False, False, False,
    ]  # fmt: skip


_Point = namedtuple("_Point", "x y")


class _Named(dict[str, int]):
    pass


class _Sly(_Named):
    def items(self) -> Any:
        raise AssertionError("a method of an answer's own class is called")

    __iter__ = keys = copy = __len__ = items  # type: ignore[assignment]


_HOUR = timedelta(hours=1)
_OTHERS: tuple[Any, ...] = (
    *(0, 1, 2, 0.5, True, "a", b"ab", [1], [2], (1, 2), [[1]], {"a": 1}, {"a": 1, "b": 1}, {1, 2}),
    *(Decimal(1), Decimal("0.5"), Decimal("0.1"), Decimal("1.0"), Fraction(1, 2), Fraction(2)),
    *(Decimal("Infinity"), 0.1, float("inf"), 1 + 0j),
    *(OrderedDict(a=1, b=1), OrderedDict(b=1, a=1), Counter("ab"), Counter("a"), Counter(a=1, c=0)),
    *(defaultdict(int, a=1), _Named(a=1), ChainMap({"a": 1}), UserDict(a=1), UserList([1])),
    *(MappingProxyType({"a": 1}), UserString("a"), _Point(1, 2), deque([1]), deque([1, 2])),
    *({"a": 1}.keys(), {1: 1, 2: 2}.keys(), {"a": 1}.items(), OrderedDict(a=1).keys()),
    *(range(0), range(2), range(0, 2, 1), range(0, 3, 2), range(0, 4, 2), slice(1), slice(None, 1)),
    *(date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=timezone.utc)),
    *(datetime(2020, 1, 1, 1, tzinfo=timezone(_HOUR)), time(1), time(1, tzinfo=timezone.utc)),
    *(_HOUR, timedelta(seconds=3600), timezone.utc, timezone(timedelta(0)), timezone(_HOUR)),
    *(int, float, type(None), Counter, len, math.sqrt, Ellipsis, NotImplemented),
    *(array("i", [1]), array("d", [1.0]), SimpleNamespace(a=1), SimpleNamespace(a=1, b=2)),
    *(HTTPStatus.OK, 200, bytearray(b"ab"), frozenset({1, 2})),
)


class _SlyNumber(int):
    def bit_length(self) -> int:
        raise AssertionError("a method of an answer's own class is called")

    def __format__(self, form: str) -> str:
        raise AssertionError("a method of an answer's own class is called")


def test_no_method_of_an_answers_own_class_is_called() -> None:
    assert equal(_sent(_Sly(a=1)), {"a": 1})
    assert equal(_sent(_SlyNumber(7)), 7)


def _as_released(one: Any, other: Any) -> bool:
    """What a test makes of two values in one process."""
    try:
        return bool(one == deepcopy(other))
    except ValueError:  # the truth of an array
        return False


def test_values_of_other_types_equal_what_they_equal_in_python() -> None:
    for one in _OTHERS:
        differing = [
            other for other in _OTHERS if equal(_sent(one), _sent(other)) is not (one == other)
        ]
        assert differing == [], repr(one)
        assert not equals_nothing(_sent(one))


def test_numbers_of_numpy_equal_what_they_equal_in_python() -> None:
    numpy = pytest.importorskip("numpy")
    values = [
        *(0, 1, 1.5, True, "a", 1j, [1], [[1]], (1.5,), [1, 2], [], None, {"a": 1}),
        *(numpy.float64(1.5), numpy.float32(1.5), numpy.int64(1), numpy.int8(0), numpy.bool_(True)),
        *(numpy.longdouble(1.5), numpy.complex128(1j), numpy.array(1), numpy.array([1])),
        *(numpy.array([[1.5]]), numpy.array([1, 2]), numpy.array([[1], [2]]), numpy.str_("a")),
        *([numpy.float64(1.5)], [numpy.array([1, 2])], {"a": numpy.int64(1)}),
    ]
    for one in values:
        differing = [
            other
            for other in values
            if equal(_sent(one), _sent(other)) is not _as_released(one, other)
        ]
        assert differing == [], repr(one)


def test_what_an_answer_defines_is_another_one_in_each_process() -> None:
    code = "class A: pass\ndef f(): pass\nclass E(Enum):\n    X = 1"
    space: dict[str, Any] = {"__name__": "__answer__", "Enum": Enum}
    exec(code, space)
    for name in ("A", "f", "E"):
        assert equals_nothing(_sent(space[name]))
    assert equals_nothing(_sent(space["E"].X))
    assert equals_nothing(_sent(Decimal("sNaN")))
    assert equals_nothing(_sent([Decimal("NaN")]))


def test_a_list_that_holds_itself_comes_to_an_end() -> None:
    value: list[Any] = []
    value.append(value)
    assert equals_nothing(_sent(value))


@pytest.mark.parametrize("value", ["x" * 2000, 1 << 10_000, [1] * 2000, "é" * 600, b"x" * 600])
def test_what_is_too_large_is_not_sent(value: Any) -> None:
    with pytest.raises(boxed_calls._TooLargeError):
        boxed_calls._encode(value, 1000)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "1",
        '"abc"',
        "{}",
        "[]",
        '["i"]',
        '["i",1]',
        '["i","xyz"]',
        '["f","1","2"]',
        '["f",1]',
        '["w",1]',
        '["w",["l",[]]]',
        '["u","d8"]',
        '["b","1"]',
        '["l",1]',
        '["l","ab"]',
        '["l",{}]',
        '["s",[["l",[]]]]',
        '["d",[["i","0x1"]]]',
        '["d",[["l",[]],null]]',
        '["o",1]',
        '["?",1]',
        '["c","0x0p+0"]',
        '["fraction",[["w","1e999999999"],["i","0x1"]]]',
        '["fraction",[["i","0x1"],["i","0x0"]]]',
        '["decimal",[["i","0x1"]]]',
        '["decimal",[["w","one"]]]',
        '["date",[["i","0x7e4"],["i","0xd"],["i","0x1"]]]',
        '["datetime",[["i","0x1"]]]',
        '["delta",[["f","0x1.0p+1000"]]]',
        '["array",[["w","i"],["w","a"]]]',
        '["keys",[["l",[]]]]',
        '["ordered",[["i","0x1"]]]',
        '["space",[["i","0x1"],["i","0x1"]]]',
        '["range",["w","1"]]',
        '["name",1]',
        '[["l"],1]',
        "[" * 60_000,
        '["l",[' * 3000 + "]]" * 3000,
        "NaN",
        '["i","' + "9" * 10 + "é" + '"]',
    ],
)
def test_other_lines_are_refused(line: str) -> None:
    with pytest.raises(MalformedValueError):
        read_value(line.encode("utf-8"))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_refused(line: bytes) -> None:
    with suppress(MalformedValueError):
        equals_nothing(read_value(line))


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("def f(): pass", "def f(): pass"),
        (" def f():\n    pass", "def f():\n   pass"),
        ("A\n```\none\n```\nB\n```\ntwo\n```", "one"),
        ("It gives:\n```\n{'a': 1}\n```\nby\n```python\none\n```\n```py\ntwo\n```", "one"),
        ("```python title=a\none\n```", "one"),
        ("```{.python3 .numbered}\none\n```", "one"),
        ("```pycon\n>>> 1\n```\n```\none\n```", "one"),
        ("``` Python \none\n```", "one"),
        ("```json\n{}\n```\n```py\none\n```", "one"),
        ("    one\n    two", "one\ntwo"),
        ("```python", ""),
    ],
)
def test_code_is_found_in_a_reply(reply: str, code: str) -> None:
    assert code_of(reply, "fresh") == code
