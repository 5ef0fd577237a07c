"""Reads the keys of a mapping against those allowed there: unknown keys are errors with the
nearest valid name, or with the place where such a key belongs."""

from __future__ import annotations

import re
from collections import Counter, abc
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from agentc.backend_api import BackendTable, EnvironmentBackend, ServerBackend, StageBackend
from agentc.diagnostics.odd_characters import without_accents
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.span import Span
from agentc.diagnostics.suggest import distance, listed, offer, suggestions, synonyms
from agentc.kinds import KINDS
from agentc.schema import language
from agentc.source.scalars import is_null
from agentc.source.tree import Entry, Mapping, Node, Scalar, Unknown, described, shortened

_MOST_UNKNOWN = 200
"""Unknown keys of one mapping that are looked at: suggestions for each take a while."""
_NAME = re.compile(language.NAME_PATTERN)


@dataclass(frozen=True, slots=True)
class Place:
    """A place for messages: `path` is dotted (`stages.sft`), `what` is prose for the mapping
    ("stage `sft` of kind sft"), `steps` say how it came to be compiled."""

    path: str
    what: str
    steps: tuple[str, ...] = ()


def as_mapping(
    node: Node, place: Place, sink: Sink, expected: str, fix: str | None = None
) -> Mapping | None:
    """The node if it is a mapping; else an error, with `fix` as its remedy. Nothing (or null) is an
    empty one; for what is unknown, an error has been reported."""
    if isinstance(node, Mapping):
        return node
    if isinstance(node, Unknown):
        return None
    if isinstance(node, Scalar) and not node.quoted and is_null(node.text):
        return Mapping((), node.span)
    sink.error(
        "AGC203",
        f"{place.what} cannot be {described(node)}",
        node.span,
        expected=expected,
        fix=fix,
        steps=place.steps,
    )
    return None


def _nearest(key: str, words: Sequence[str], beside: Collection[str]) -> tuple[str, ...]:
    """What a key may have been meant for: one that is not there yet, unless one that stands
    `beside` it is nearer."""
    free = suggestions(key, (name for name in words if name not in beside))
    near = suggestions(key, words)
    if free and near and free[0] not in near:
        nearer = distance(key.lower(), near[0].lower(), 3) < distance(key.lower(), free[0], 3)
        return near if nearer else free
    return free or near


def _beside(around: Span, key: Scalar, found: Iterable[Scalar]) -> set[str]:
    """Keys that were written in one mapping with this one. What a template or the spec below a
    scale has may be set again here, so a slip may mean that too."""
    here = _encloses(around, key.span)
    return {each.text for each in found if _encloses(around, each.span) == here}


def _encloses(outer: Span, inner: Span) -> bool:
    begin, end = (outer.line, outer.column), (outer.end_line, outer.end_column)
    return inner.source == outer.source and begin <= (inner.line, inner.column) < end


def read_keys(
    node: Mapping,
    allowed: Collection[str],
    place: Place,
    sink: Sink,
    table: BackendTable | None = None,
    more: abc.Mapping[str, Collection[str]] = MappingProxyType({}),
) -> dict[str, Entry]:
    """Entries by key, as `known_keys` finds them."""
    keys = [entry.key for entry in node.entries]
    known = known_keys(keys, node.span, allowed, place, sink, table, more)
    entries = {entry.key.text: entry for entry in node.entries}
    return {name: entries[key.text] for name, key in known.items()}


def known_keys(
    keys: Sequence[Scalar],
    around: Span,
    allowed: Collection[str],
    place: Place,
    sink: Sink,
    table: BackendTable | None = None,
    more: abc.Mapping[str, Collection[str]] = MappingProxyType({}),
) -> dict[str, Scalar]:
    """The keys of a mapping by what they mean. A misspelt one is reported and then read as what
    was probably meant, so that it does not also count as missing. `more` are words that a key may
    have been meant as though they are not allowed here."""
    found = {key.text: key for key in keys if key.text in allowed}
    # Templates are in place by now, so a key that is left over may be a misspelt `use`.
    declares = place.path.split(".")[0] in language.TEMPLATES.values()
    of_backend = place.path.split(".")[0] in ("environments", "servers")
    words = [
        *allowed,
        *(language.USE_KEYS if declares else ()),
        *(("backend",) if of_backend else ()),  # read already, or at the scale that a slip is in
    ]
    unknown = [key for key in keys if key.text not in found]
    for written in unknown[:_MOST_UNKNOWN]:
        key, beside = written.text, _beside(around, written, found.values())
        near = _nearest(key, [*words, *more.get(key, ())], beside)
        notes, hint = belongs(key, place, table, words)
        meant = [name for name in synonyms(key) if name in words]
        slip = bool(near) and distance(key.lower(), near[0].lower(), 1) <= 1
        exact = bool(notes) and not (slip and near[0].lower() == key.lower())
        sink.error(
            "AGC201",
            f"unknown key `{key}` in {place.what}",
            written.span,
            expected=None if near or exact else _expected(allowed),
            notes=notes if exact else (),
            fix=hint or offer(meant) if exact and not slip else offer(near),
            steps=place.steps,
        )
        if len(near) == 1 and near[0] in allowed and near[0] not in found and not exact:
            found[near[0]] = written
    if len(unknown) > _MOST_UNKNOWN:
        sink.error(
            "AGC201",
            f"{len(unknown) - _MOST_UNKNOWN} further keys are unknown in {place.what}",
            unknown[_MOST_UNKNOWN].span,
            steps=place.steps,
        )
    return found


def _expected(allowed: Collection[str]) -> str:
    return f"one of {listed(sorted(allowed))}" if allowed else "no key here"


def misspelt_use(mapping: Mapping, place: Place, sink: Sink) -> Entry | None:
    """What was meant as the `use` of something that says neither that nor what it is otherwise; it
    is reported."""
    for entry in mapping.entries:
        near = suggestions(entry.key.text, ["use"])
        if near and isinstance(entry.value, Scalar):
            sink.error(
                "AGC201",
                f"unknown key `{entry.key.text}` in {place.what}",
                entry.key.span,
                fix=offer(near),
                steps=place.steps,
            )
            return entry
    return None


def belongs(
    key: str, place: Place, table: BackendTable | None, allowed: Collection[str] = ()
) -> tuple[tuple[str, ...], str | None]:
    """Where else in the language such a key exists: notes, and a hint when one is plain."""
    if place.path and key in language.TOP_LEVEL and key != "name":
        return (f"`{key}` is a key of the top level",), None
    kinds = [kind.name for kind in KINDS if any(field.name == key for field in kind.fields)]
    kinds += [k.name for k in KINDS if any(role.name == key for role in k.roles)]
    # Another word for a key that is allowed here is meant for that one.
    names = (key, *(name for name in synonyms(key) if name not in allowed))
    groups = sorted(
        {
            (field.name not in allowed, field.name, inner.name, kind.name)
            for kind in KINDS
            for field in kind.fields
            for inner in field.fields
            if inner.name in names
        }
    )
    notes: list[str] = []
    hint = None
    if kinds:
        shown = " and ".join(list(dict.fromkeys(kinds))[:4])
        notes.append(f"`{key}` belongs to kind {shown}")
    if groups:
        # Of several groups the one that most kinds have.
        kinds_with = Counter(group for _, group, _, _ in groups)
        elsewhere, group, inner, _ = min(groups, key=lambda at: (at[0], -kinds_with[at[1]], at))
        meant = f"`{key}`" if inner == key else f"`{key}` is called `{inner}` here, and"
        if elsewhere:
            where = " and ".join(dict.fromkeys(k for _, g, _, k in groups if g == group))
            notes.append(f"{meant} belongs under `{group}:` of kind {where}")
        else:
            here = sorted({g for outside, g, i, _ in groups if not outside and i == inner})
            shown = " or ".join(f"`{each}:`" for each in here)
            notes.append(f"{meant} belongs under {shown}")
            hint = f"write `{group}: {{{inner}: ...}}`" if len(here) == 1 else None
    if key in language.STAGE_KEYS and not place.path.startswith("stages"):
        notes.append(f"`{key}` is a key of stages")
    asked = [field.name for field in language.PLACEMENT_FIELDS if field.name in names]
    if asked:
        meant = f"`{key}`" if asked[0] == key else f"`{key}` is called `{asked[0]}` here, and"
        notes.append(f"{meant} belongs under `placement:`")
        hint = f"write `placement: {{{asked[0]}: ...}}`"
    for backend in table or ():
        if isinstance(backend, StageBackend) and any(f.name == key for f in backend.options):
            notes.append(f"`{key}` is an option of backend {backend.id}: it goes under `options:`")
        elif isinstance(backend, (EnvironmentBackend, ServerBackend)) and any(
            field.name == key for field in backend.fields
        ):
            notes.append(f"`{key}` belongs to {backend.id}")
    return tuple(notes[:3]), hint


def checked_name(name: Scalar, what: str, sink: Sink) -> bool:
    """Whether a declared name is of the allowed form; else an error."""
    if is_name(name.text):
        return True
    long = len(name.text) > language.LONGEST_NAME
    sink.error(
        "AGC206",
        f"`{shortened(name.text)}` cannot be the name of {what}",
        name.span,
        expected=f"at most {language.LONGEST_NAME} characters"
        if long
        else "small letters, digits and `_`, starting with a letter",
        notes=(f"it has {len(name.text)} characters",) if long else (),
        fix=None if long else f"write `{tidied(name.text)}`",
    )
    return False


def is_name(text: str) -> bool:
    """Whether a declaration may be called so."""
    words = ("null", "true", "false")  # not text, to other readers of YAML
    return (
        text not in words
        and len(text) <= language.LONGEST_NAME
        and _NAME.fullmatch(text) is not None
    )


def tidied(text: str) -> str:
    """The name that a refused one may become."""
    tidy = re.sub(r"[^a-z0-9]+", "_", without_accents(text).lower()).strip("_")
    return tidy if is_name(tidy) else f"x_{tidy}".rstrip("_")
