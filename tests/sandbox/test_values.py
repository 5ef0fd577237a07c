"""Values through the channel: what is written in a box is read outside, and nothing else is."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc_backends.environments.code_tests import boxed_calls
from agentc_backends.environments.code_tests.answer import code_of
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


def test_what_is_no_plain_value_is_opaque() -> None:
    class Sly(int):
        __class__ = int  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    for value in (object(), Sly(3), [Sly(3)], {1: (object(),)}, float("nan"), [float("nan")]):
        assert equals_nothing(_sent(value))
        assert not equal(_sent(value), _sent(value))
    assert isinstance(_sent(Sly(3)), OpaqueValue)


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
