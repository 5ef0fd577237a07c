"""Canonical JSON: one text for one value, for hashing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

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
