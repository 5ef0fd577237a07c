"""Where else in the language a key belongs that is unknown where it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from agentc.backend_api import BackendTable, EnvironmentBackend, ServerBackend, StageBackend
from agentc.diagnostics.synonyms import synonyms
from agentc.kinds import KINDS
from agentc.schema import language

if TYPE_CHECKING:
    from agentc.schema.keys import Place


def belongs(
    key: str, place: Place, table: BackendTable | None, allowed: Collection[str] = ()
) -> tuple[tuple[str, ...], str | None]:
    """Where else in the language such a key exists: notes, and a hint when one is plain."""
    if place.path and key in language.TOP_LEVEL and key != "name":
        return (f"`{key}` is a key of the top level",), None
    # Another word for a key that is allowed here is meant for that one.
    names = (key, *(name for name in synonyms(key) if name not in allowed))
    if not place.path and (note := _of_stage_kinds(names)) is not None:
        return (note,), None
    found = (
        (_of_kinds(key), None),
        _in_groups(key, names, allowed),
        (_of_stages(key, place), None),
        _in_placement(key, names, place),
        *(_of_backend(key, backend, place) for backend in table or ()),
    )
    notes = tuple(note for note, _ in found if note is not None)
    hints = [hint for _, hint in found if hint is not None]
    # That of placement is the more certain one; of an option's, others come first.
    best = found[3][1] or (hints[0] if hints else None)
    return notes[:3], best


def _of_stage_kinds(names: Sequence[str]) -> str | None:
    """What a key of the top level means as a setting of stages, by its name here."""
    for name in names:
        kinds = [kind.name for kind in KINDS if kind.has(name)]
        if kinds:
            where = ", ".join(kinds[:4])
            return f"{_called(names[0], name)} is a setting of stages (kind {where})"
    return None


def _of_kinds(key: str) -> str | None:
    kinds = [kind.name for kind in KINDS if kind.has(key)]
    kinds += [kind.name for kind in KINDS if kind.role(key) is not None]
    if not kinds:
        return None
    return f"`{key}` belongs to kind {' and '.join(list(dict.fromkeys(kinds))[:4])}"


def _called(key: str, name: str) -> str:
    """The key, with what it is called here where that is another word."""
    return f"`{key}`" if name == key else f"`{key}` is called `{name}` here, and"


def _in_groups(
    key: str, names: Sequence[str], allowed: Collection[str]
) -> tuple[str | None, str | None]:
    """The group of settings that such a key belongs to: one of this place if there is one."""
    groups = sorted(
        {
            (field.name not in allowed, field.name, inner.name, kind.name)
            for kind in KINDS
            for field in kind.fields
            for inner in field.fields
            if inner.name in names
        }
    )
    if not groups:
        return None, None
    # Of several groups the one that most kinds have.
    kinds_with = Counter(group for _, group, _, _ in groups)
    elsewhere, group, inner, _ = min(groups, key=lambda at: (at[0], -kinds_with[at[1]], at))
    meant = _called(key, inner)
    if elsewhere:
        where = " and ".join(dict.fromkeys(kind for _, other, _, kind in groups if other == group))
        return f"{meant} belongs under `{group}:` of kind {where}", None
    here = sorted({other for away, other, name, _ in groups if not away and name == inner})
    shown = " or ".join(f"`{name}:`" for name in here)
    hint = f"write `{group}: {{{inner}: ...}}`" if len(here) == 1 else None
    return f"{meant} belongs under {shown}", hint


def _of_stages(key: str, place: Place) -> str | None:
    elsewhere = key in language.STAGE_KEYS and not place.path.startswith("stages")
    return f"`{key}` is a key of stages" if elsewhere else None


def _in_placement(key: str, names: Sequence[str], place: Place) -> tuple[str | None, str | None]:
    wanted = [field.name for field in language.PLACEMENT_FIELDS if field.name in names]
    if not wanted:
        return None, None
    meant = _called(key, wanted[0])
    if place.path.endswith("placement"):  # a server's, which takes fewer
        return f"{meant} is for the `placement:` of a stage", None
    return f"{meant} belongs under `placement:`", f"write `placement: {{{wanted[0]}: ...}}`"


def _of_backend(
    key: str, backend: StageBackend | EnvironmentBackend | ServerBackend, place: Place
) -> tuple[str | None, str | None]:
    if isinstance(backend, StageBackend):
        if all(field.name != key for field in backend.options):
            return None, None
        note = f"`{key}` is an option of backend {backend.id}: it goes under `options:`"
        own = backend.kind == place.what.rpartition(" of kind ")[2]
        return note, f"write it under `options:`, as `options: {{{key}: ...}}`" if own else None
    named = any(field.name == key for field in backend.fields)
    return f"`{key}` belongs to {backend.id}" if named else None, None
