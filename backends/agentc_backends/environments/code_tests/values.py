"""Values that came out of a box, as Python's own again: nothing but the types that are named here.

A line from a box is hostile text. It is JSON of bounded length; whatever is not exactly what
`boxed_calls.py` writes is refused.
"""

from __future__ import annotations

import json
from typing import Any

_decode = json.JSONDecoder().raw_decode
"""As `json.loads`, without its search for spaces: ten lines of each answer are read."""


class MalformedValueError(Exception):
    """It is no value as `boxed_calls.py` writes them."""


class OpaqueValue:
    """Some object that has no value outside of its process. It equals nothing."""

    __slots__ = ()


def read_value(text: bytes) -> Any:
    """Raises MalformedValueError."""
    try:
        read, end = _decode(text.decode("ascii"))
        if end != len(text):
            raise MalformedValueError("there is more behind it")
        return _value(read)
    # Too many brackets, numbers as keys of sets that cannot be hashed, odd hexadecimal digits.
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
        raise MalformedValueError(str(error)) from None


def equal(one: Any, other: Any) -> bool:
    """Python's `==`: 1 is 1.0 and True, a list is no tuple, NaN and opaque values equal nothing."""
    try:
        return bool(one == other)
    except RecursionError:
        return False


def equals_nothing(value: Any) -> bool:
    """Whether it is opaque or NaN, or has such a member."""
    if isinstance(value, dict):
        return any(equals_nothing(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(equals_nothing(member) for member in value)
    return isinstance(value, OpaqueValue) or value != value


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
    return _READERS[tag](part)


def _plain(read: Any) -> str:
    if not isinstance(read, str):
        raise TypeError("a text is a text")
    return read


def _members(read: Any) -> list[Any]:
    if not isinstance(read, list):
        raise TypeError("members are a list")
    return [_value(member) for member in read]


def _pairs(read: Any) -> dict[Any, Any]:
    members = _members(read)
    return dict(zip(members[::2], members[1::2], strict=True))


_READERS = {
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
    "d": _pairs,
}
