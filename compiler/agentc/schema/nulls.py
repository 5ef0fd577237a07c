"""What `null` takes away from an entry of `servers:` or `environments:`.

Neighbour: `front/resolve_entries.py`, which reads what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentc.backend_api import EnvironmentBackend, ServerBackend
from agentc.kinds.field import Field
from agentc.schema.describe import types_of
from agentc.source.tree import Computed, Entry, Scalar

Resource = EnvironmentBackend | ServerBackend


def without_taken_away(
    entries: Iterable[Entry], allowed: Mapping[str, Field], others: Iterable[Resource]
) -> tuple[Entry, ...]:
    """The entries without those that say `null` of a key that takes none: one of another backend,
    as a scale has it that takes another, or one with a default, as an expression has it that sets
    the key in some cases only. `others` are the backends of the section."""
    known = {field.name for backend in others for field in backend.fields}
    return tuple(
        entry
        for entry in entries
        if not _says_null(entry) or not _means_nothing(allowed.get(entry.key.text), entry, known)
    )


def _says_null(entry: Entry) -> bool:
    value = entry.value
    if isinstance(value, Computed):
        return value.json is None
    return isinstance(value, Scalar) and not value.quoted and value.text == "null"


def _means_nothing(field: Field | None, entry: Entry, known: set[str]) -> bool:
    if field is None:
        return entry.key.text in known
    return not field.required and "null" not in types_of(field.schema)
