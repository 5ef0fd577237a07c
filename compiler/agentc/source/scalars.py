"""Reads plain scalars as a researcher means them, which is YAML 1.2 and not PyYAML's YAML 1.1.

`2e-5` is a number, `1_000` is 1000, `010` is ten, `no` and `on` are words, `1:30` is text.
Each reader returns None for text that isn't of its type.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

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
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
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
    return value if value - value == 0 else None  # inf - inf is nan: 1e999 isn't a number


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


def advise(text: str, wanted: Literal["number", "boolean", "null"]) -> str | None:
    """A help line for text that is nearly of the wanted type, or None."""
    if wanted == "boolean":
        word = text.lower()
        if word in ("yes", "on", "y", "1"):
            return "write `true`"
        if word in ("no", "off", "n", "0"):
            return "write `false`"
        return None
    if wanted == "null":
        return "write `null`" if text in ("None", "none", "nil", "NULL", "-") else None
    tidy = text.replace("\N{MINUS SIGN}", "-").replace("\N{EN DASH}", "-")
    if tidy != text and read_number(tidy) is not None:
        return f"write `{tidy}`, with an ordinary minus sign"
    if read_number(text.replace(",", "")) is not None and re.fullmatch(r"-?\d{1,3}(,\d{3})+", text):
        return f"write `{text.replace(',', '_')}`"
    if re.fullmatch(r"-?\d+,\d+([eE][-+]?\d+)?", text):
        return f"write `{text.replace(',', '.')}`, with a decimal point"
    if text.endswith("%") and (share := read_number(text[:-1].strip())) is not None:
        return f"write `{share / 100:g}`"
    scaled = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*([kKmMbB])", text.replace("_", ""))
    if scaled:
        factor = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000}[scaled[2].lower()]
        return f"write `{float(scaled[1]) * factor:.0f}`"
    power = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*[*x]\s*10\s*(?:\^|\*\*)\s*(-?\d+)", text)
    if power:
        return f"write `{power[1]}e{power[2]}`"
    if re.fullmatch(r"[-+]?\.?(inf|nan)", text.lower()):
        return "a number has to be finite"
    return None
