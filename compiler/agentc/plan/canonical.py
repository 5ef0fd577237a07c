"""Canonical JSON: one text for one value, for hashing and for files that are compared."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring

from agentc.kinds.field import Json

_SCALARS = frozenset({str, int, bool, type(None)})


def canonical_text(value: object) -> str:
    """Compact canonical JSON for hashing: sorted keys, no spaces, `3.0` written as `3`, because
    `epochs: 3` and `epochs: 3.0` are one setting.

    Raises TypeError for anything that has no stable JSON form (a set, a path, a number that is
    not finite, a key that is not text), with what it was.
    """
    plain = plain_json(value, whole_floats=False)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def pretty_text(value: object) -> str:
    """The same value for files: sorted keys, two-space indent, a newline at the end; floats keep
    their type. Equals `json.dumps(..., indent=2)`, which is five times slower."""
    parts: list[str] = []
    _write(value, "\n", parts)
    parts.append("\n")
    return "".join(parts)


def plain_json(value: object, *, whole_floats: bool = True) -> Json:
    """A deep copy in plain JSON types; tuples become lists. See `canonical_text` for errors."""
    # Exact types first: the abstract ones cost ten times as much, and plans are large.
    if type(value) in _SCALARS:
        return value  # type: ignore[return-value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{value!r} has no canonical form")
        whole = not whole_floats and value.is_integer() and abs(value) < 2**53
        return int(value) if whole else value
    if isinstance(value, (dict, Mapping)):
        result: dict[str, Json] = {}
        for name, item in value.items():
            if not isinstance(name, str):
                raise TypeError("a mapping with keys that are not text has no canonical form")
            result[name] = plain_json(item, whole_floats=whole_floats)
        return result
    if isinstance(value, (list, tuple, Sequence)) and not isinstance(value, (str, bytes)):
        return [plain_json(item, whole_floats=whole_floats) for item in value]
    raise TypeError(f"a {type(value).__name__} has no canonical form")


def _write(value: object, newline: str, parts: list[str]) -> None:
    """Append the text of a value; `newline` ends with the indent of its own line."""
    kind = type(value)
    if isinstance(value, str):
        parts.append(encode_basestring(value))
    elif kind is int or (kind is float and math.isfinite(value)):  # type: ignore[arg-type]
        parts.append(repr(value))
    elif isinstance(value, dict):
        _write_mapping(value, newline, parts)
    elif isinstance(value, (list, tuple)):
        _write_sequence(value, newline, parts)
    elif value is None or kind is bool:
        parts.append("null" if value is None else "true" if value else "false")
    else:  # floats, and mappings and sequences of other types, with their checks
        plain = plain_json(value)
        if isinstance(plain, (dict, list)):
            _write(plain, newline, parts)
        else:
            parts.append(json.dumps(plain, ensure_ascii=False))


def _write_mapping(value: dict[object, object], newline: str, parts: list[str]) -> None:
    inner = newline + "  "
    lead = "{" + inner
    names = [name for name in value if isinstance(name, str)]
    if len(names) != len(value):
        raise TypeError("a mapping with keys that are not text has no canonical form")
    for name in sorted(names):
        item = value[name]
        # Most values are texts or nothing: a call for each is a tenth of writing a large plan.
        if type(item) is str:
            parts.append(f"{lead}{encode_basestring(name)}: {encode_basestring(item)}")
        elif item is None:
            parts.append(f"{lead}{encode_basestring(name)}: null")
        else:
            parts.append(f"{lead}{encode_basestring(name)}: ")
            _write(item, inner, parts)
        lead = "," + inner
    parts.append(newline + "}" if value else "{}")


def _write_sequence(
    value: list[object] | tuple[object, ...], newline: str, parts: list[str]
) -> None:
    inner = newline + "  "
    lead = "[" + inner
    for item in value:
        parts.append(lead)
        _write(item, inner, parts)
        lead = "," + inner
    parts.append(newline + "]" if value else "[]")
