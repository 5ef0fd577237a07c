"""What `null` takes away from an entry of `servers:` or `environments:`.

Neighbour: `front/resolve_entries.py`, which reads what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentc.backend_api import EnvironmentBackend, ServerBackend
from agentc.kinds.field import Field
from agentc.schema.describe import types_of


def taken_away(
    nulls: Iterable[str],
    allowed: Mapping[str, Field],
    others: Iterable[EnvironmentBackend | ServerBackend],
) -> frozenset[str]:
    """Of the keys that say `null` those that take none: of another backend of the section
    (`others`), as a scale has it that takes another, or with a default, as an expression has it
    that sets the key in some cases only."""
    known = {field.name for backend in others for field in backend.fields}
    return frozenset(
        key
        for key in nulls
        if (key in known if (field := allowed.get(key)) is None else _has_default(field))
    )


def _has_default(field: Field) -> bool:
    return not field.required and "null" not in types_of(field.schema)
