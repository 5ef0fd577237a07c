"""Reads a plain scalar as one of the types that are wanted at its place. Part of `coerce.py`."""

from __future__ import annotations

import re

from agentc.kinds.field import Json
from agentc.source.scalars import (
    LARGEST_INTEGER,
    is_null,
    read_boolean,
    read_integer,
    read_number,
)
from agentc.source.tree import Scalar


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


def fits(pattern: str, value: str) -> bool:
    """Whether a text fits a schema's pattern. JSON Schema's `$` is the very end; Python's also
    stands before a last line break."""
    if pattern.endswith("$") and not pattern.endswith("\\$"):
        pattern = pattern[:-1] + r"\Z"
    return re.search(pattern, value) is not None
