"""Values that came out of a box, as Python's own again: nothing but the types that are named here.

A line from a box is hostile text. It is JSON of bounded length; whatever is not exactly what
`boxed_calls.py` writes is refused.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, ItemsView, KeysView
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

_MALFORMED = (ValueError, TypeError, KeyError, IndexError, ArithmeticError, RecursionError)
"""Too many brackets, members of sets that cannot be hashed, odd digits, no such day."""
_decode = json.JSONDecoder().raw_decode
"""As `json.loads`, without its search for spaces: ten lines of each answer are read."""


class MalformedValueError(Exception):
    """It is no value as `boxed_calls.py` writes them."""


class OpaqueValue:
    """Some object that has no value outside of its process. It equals nothing."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A class or a function of Python or of a package: it equals itself."""

    name: str


class OneNumber:
    """A number of numpy, or an array of one: it equals its number, and lists of one that equals
    it, however deep."""

    __slots__ = ("_item",)

    def __init__(self, item: Any) -> None:
        self._item = item

    def __eq__(self, other: object) -> bool:
        while isinstance(other, (list, tuple)) and len(other) == 1:
            other = other[0]
        return bool(self._item == (other._item if isinstance(other, OneNumber) else other))

    def __hash__(self) -> int:
        return hash(self._item)


def read_value(text: bytes) -> Any:
    """Raises MalformedValueError."""
    try:
        read, end = _decode(text.decode("ascii"))
        if end != len(text):
            raise MalformedValueError("there is more behind it")
        return _value(read)
    except _MALFORMED as error:
        raise MalformedValueError(str(error)) from None


def equal(one: Any, other: Any) -> bool:
    """Python's `==`: 1 is 1.0 and True, a list is no tuple, NaN and opaque values equal nothing."""
    try:
        return bool(one == other)
    except (ArithmeticError, RecursionError):  # a signaling NaN raises
        return False


def equals_nothing(value: Any) -> bool:
    """Whether it is opaque or NaN, or has such a member."""
    if isinstance(value, SimpleNamespace):
        value = vars(value)
    if isinstance(value, (dict, ItemsView)):
        pairs = value.items() if isinstance(value, dict) else value
        return any(equals_nothing(part) for pair in pairs for part in pair)
    if isinstance(value, (list, tuple, set, frozenset, deque, array, KeysView)):
        return any(equals_nothing(member) for member in value)
    return isinstance(value, OpaqueValue) or not equal(value, value)


def _value(read: Any) -> Any:
    if read is None or isinstance(read, bool):
        return read
    tag, *parts = read
    if tag == "o" and not parts:
        return OpaqueValue()
    if tag == "c":
        real, imaginary = parts
        return complex(float.fromhex(real), float.fromhex(imaginary))
    (part,) = parts
    return _MADE[tag](*_members(part)) if tag in _MADE else _READERS[tag](part)


def _plain(read: Any) -> str:
    if not isinstance(read, str):
        raise TypeError("a text is a text")
    return read


def _members(read: Any) -> list[Any]:
    if not isinstance(read, list):
        raise TypeError("members are a list")
    return [_value(member) for member in read]


def _pairs(members: list[Any]) -> dict[Any, Any]:
    return dict(zip(members[::2], members[1::2], strict=True))


def _moment(year: Any, month: Any, day: Any, *clock: Any) -> datetime:
    return datetime.combine(date(year, month, day), _clock(*clock))


def _clock(hour: Any, minute: Any, second: Any, microsecond: Any, offset: Any) -> time:
    zone = None if offset is None else timezone(offset)
    return time(hour, minute, second, microsecond, zone)


def _decimal(text: Any) -> Decimal:
    return Decimal(_plain(text))


def _fraction(numerator: Any, denominator: Any) -> Fraction:
    """Of integers alone: of a text with an exponent it would take all memory."""
    if type(numerator) is not int or type(denominator) is not int:
        raise TypeError("a fraction is made of integers")
    return Fraction(numerator, denominator)


_MADE: dict[str, Callable[..., Any]] = {
    "range": range,
    "slice": slice,
    "keys": lambda *members: dict.fromkeys(members).keys(),
    "items": lambda *members: _pairs([*members]).items(),
    "ordered": lambda *members: OrderedDict(_pairs([*members])),
    "counter": lambda *members: Counter(_pairs([*members])),
    "deque": lambda *members: deque(members),
    "decimal": _decimal,
    "fraction": _fraction,
    "date": date,
    "datetime": _moment,
    "time": _clock,
    "delta": timedelta,
    "zone": timezone,
    "array": lambda code, *members: array(code, members),
    "space": lambda *members: SimpleNamespace(**_pairs([*members])),
    "name": NamedValue,
    "one": OneNumber,
}
"""What the parts of a value are given to, by the tags of `boxed_calls.py`."""


_READERS: dict[str, Callable[[Any], Any]] = {
    "i": lambda part: int(part, 16),
    "f": float.fromhex,
    "w": _plain,
    "u": lambda part: bytes.fromhex(part).decode("utf-8", "surrogatepass"),
    "b": bytes.fromhex,
    "a": bytearray.fromhex,
    "l": _members,
    "t": lambda part: tuple(_members(part)),
    "s": lambda part: set(_members(part)),
    "z": lambda part: frozenset(_members(part)),
    "d": lambda part: _pairs(_members(part)),
}
