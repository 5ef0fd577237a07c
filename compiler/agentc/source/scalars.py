"""Reads plain scalars as a researcher means them, which is YAML 1.2 and not PyYAML's YAML 1.1.

`2e-5` is a number, `1_000` is 1000, `010` is ten, `no` and `on` are words, `1:30` is text.
Each reader returns None for text that isn't of its type; `read_scalar` takes the types that are
wanted at its place.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from agentc.kinds.field import Json
from agentc.source.tree import Scalar

Plain: TypeAlias = bool | int | float | str | None

_DIGITS = r"[0-9](?:_?[0-9])*"
_INTEGER = re.compile(rf"[-+]?{_DIGITS}")
_BASED = re.compile(r"[-+]?0(?:x[0-9a-fA-F]+|o[0-7]+|b[01]+)")
_NUMBER = re.compile(rf"[-+]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][-+]?[0-9]+)?")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_LONGEST_NUMBER = 100
LARGEST_INTEGER = 2**63 - 1
"""What files and programs of other languages still hold; no setting takes more."""


def is_expression(text: str) -> bool:
    """Whether it holds `{{ }}` and so has to be evaluated before it means anything."""
    return "{{" in text


def is_null(text: str) -> bool:
    """Whether plain text means null."""
    return text in _NULLS


def read_boolean(text: str) -> bool | None:
    """`true` and `false` only; `yes`, `no`, `on` and `off` are words."""
    return _BOOLEANS.get(text)


def read_integer(text: str) -> int | None:
    """Digits with optional `_` between them, `0x..`, `0o..`, `0b..`, or whole: `1e4`, `3.0`."""
    if len(text) > _LONGEST_NUMBER:
        return None
    if _INTEGER.fullmatch(text) or _BASED.fullmatch(text):
        return int(text) if _INTEGER.fullmatch(text) else int(text, 0)
    value = read_number(text)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return None


def read_number(text: str) -> int | float | None:
    """A finite number; an int when it is written as one."""
    if len(text) > _LONGEST_NUMBER:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    if value == 0 and any(digit in "123456789" for digit in text.lower().partition("e")[0]):
        return None  # 1e-400 is no zero
    return value if value - value == 0 else None  # inf - inf is nan: 1e999 isn't a number


class Failed:
    """No value; the sink says why, or has said so before."""

    __slots__ = ()


FAILED = Failed()


def read_scalar(node: Scalar, types: tuple[str, ...]) -> Json | Failed:
    """The value of a scalar as one of `types`, or FAILED."""
    text = node.text
    if node.quoted:
        return text if "string" in types else FAILED
    if is_null(text):
        return None if "null" in types else FAILED
    if "boolean" in types and (boolean := read_boolean(text)) is not None:
        return boolean
    if "integer" in types and (whole := read_integer(text)) is not None:
        return whole if abs(whole) <= LARGEST_INTEGER else FAILED
    if "number" in types and (number := read_number(text)) is not None:
        return number
    return text if "string" in types else FAILED


def plain_value(scalar: Scalar) -> Plain:
    """What a scalar means where nothing particular is wanted: YAML 1.2's core schema."""
    text = scalar.text
    if scalar.quoted:
        return text
    if is_null(text):
        return None
    boolean = read_boolean(text)
    if boolean is not None:
        return boolean
    if _BASED.fullmatch(text) and len(text) <= _LONGEST_NUMBER:
        return int(text, 0)
    number = read_number(text)
    return text if number is None else number
