"""Reads the keys of a mapping against those allowed there: unknown keys are errors with the
nearest valid name, or with the place where such a key belongs."""

from __future__ import annotations

import re
from collections import abc
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from agentc.backend_api import BackendTable, StageBackend
from agentc.diagnostics.diagnostic import Span
from agentc.diagnostics.odd_characters import without_accents
from agentc.diagnostics.other_tools import advice_for_key
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import distance, listed, nearest_first, offer, suggestions
from agentc.diagnostics.synonyms import synonyms
from agentc.kinds.field import Field
from agentc.schema import language
from agentc.schema.describe import describe
from agentc.schema.misplaced_keys import belongs
from agentc.source.scalars import is_null
from agentc.source.tree import Entry, Mapping, Node, Scalar, Unknown, described, shortened

_MOST_UNKNOWN = 200
"""Unknown keys of one mapping that are looked at: suggestions for each take a while."""
_BACKEND = ("backend",)
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


@dataclass(frozen=True, slots=True)
class ResolvedKeys:
    """What the keys of a mapping mean: `right` ones by name, and for the names that misspelt ones
    may have been meant for, the key. The latter were reported, and nothing that follows should be:
    that such a name is missing, or what its value would mean."""

    right: dict[str, Scalar]
    guessed: dict[str, Scalar]


def read_keys(
    node: Mapping,
    allowed: Collection[str],
    place: Place,
    sink: Sink,
    table: BackendTable | None = None,
    *,
    required: Collection[str] = (),
    outline: bool = False,
) -> dict[str, Entry]:
    """Entries by key, as `resolve_keys` reads them. Those of misspelt keys have an unknown value;
    in an `outline`, whose values are read for names and further keys, mappings stay."""
    keys = [entry.key for entry in node.entries]
    known = resolve_keys(keys, node.span, allowed, place, sink, table, required=required)
    entries = {entry.key.text: entry for entry in node.entries}
    found = {name: entries[key.text] for name, key in known.right.items()}
    for name, key in known.guessed.items():
        value = entries[key.text].value
        kept = outline and name not in found and _is_readable(value)
        found[name] = Entry(key, value if kept else Unknown(value.span))
    return found


def _is_readable(node: Node) -> bool:
    """Whether a mapping under a misspelt key holds no template: those are put into place where
    they are expected, so one that is left is no fault of its own."""
    return isinstance(node, Mapping) and not any(
        entry.key.text == "use"
        or (isinstance(entry.value, Mapping) and not _is_readable(entry.value))
        for entry in node.entries
    )


def resolve_keys(
    keys: Sequence[Scalar],
    around: Span,
    allowed: Collection[str],
    place: Place,
    sink: Sink,
    table: BackendTable | None = None,
    more: abc.Mapping[str, Collection[str]] = MappingProxyType({}),
    required: Collection[str] = (),
) -> ResolvedKeys:
    """The keys of a mapping by what they mean; unknown ones are reported. `more` are words that a
    key may have been meant as though they are not allowed here, `required` those that have to be
    there: the only one that is missing may be what the only unknown key was meant for. Where
    `allowed` is a table of fields, a message says what a meant one takes."""
    right = {key.text: key for key in keys if key.text in allowed}
    guessed: dict[str, Scalar] = {}
    words = _words_here(allowed, place)
    unknown = [key for key in keys if key.text not in right]
    if _is_of_backend(place) and len(unknown) > 1:
        unknown = _without_settings(unknown, words, table)
    for written in unknown[:_MOST_UNKNOWN]:
        missing = [name for name in required if name not in right and name not in guessed]
        slip = _slip(written, around, words, more, right, missing, place, table)
        if not slip.meant and len(unknown) == len(missing) == 1:
            slip = replace(slip, meant=(missing[0],), fix=slip.fix or _may_be_meant(missing[0]))
        sink.error(
            "AGC201",
            f"unknown key `{written.text}` in {place.what}",
            written.span,
            expected=_expected(written.text, allowed, slip),
            notes=slip.notes,
            fix=slip.fix,
            steps=place.steps,
        )
        beside = _beside(around, written, right.values())
        guessed |= {name: written for name in slip.meant if name in allowed and name not in beside}
    if len(unknown) > _MOST_UNKNOWN:
        sink.error(
            "AGC201",
            f"{len(unknown) - _MOST_UNKNOWN} further keys are unknown in {place.what}",
            unknown[_MOST_UNKNOWN].span,
            steps=place.steps,
        )
    return ResolvedKeys(right, guessed)


def _without_settings(
    unknown: list[Scalar], words: Sequence[str], table: BackendTable | None
) -> list[Scalar]:
    """The unknown keys but for the settings of another backend, which was meant, at a scale: what
    its settings are is not known."""
    meant = [key for key in unknown if suggestions(key.text, words)[:1] == _BACKEND]
    return meant or [key for key in unknown if not _is_meant_elsewhere(key, unknown, table)]


def _is_of_backend(place: Place) -> bool:
    return place.path.split(".")[0] in ("environments", "servers")


def _words_here(allowed: Collection[str], place: Place) -> list[str]:
    """What a key of a place may be meant as."""
    # Templates are in place by now, so a key that is left over may be a misspelt `use`.
    declares = place.path.split(".")[0] in language.TEMPLATES.values()
    return [
        *allowed,
        *(language.USE_KEYS if declares else ()),
        # read already, or at the scale that a slip is in
        *(("backend",) if _is_of_backend(place) else ()),
    ]


def _is_meant_elsewhere(key: Scalar, unknown: Sequence[Scalar], table: BackendTable | None) -> bool:
    """Whether a setting of another backend is left, at a scale, since what would remove it is
    misspelt."""
    fields = {
        field.name
        for backend in (() if table is None else table.backends.values())
        if not isinstance(backend, StageBackend)
        for field in backend.fields
    }
    return key.text in fields and any(
        each.text not in fields and suggestions(each.text, [key.text]) for each in unknown
    )


@dataclass(frozen=True, slots=True)
class _Slip:
    """An unknown key: the names that it may have been meant for, and what is said of it."""

    meant: tuple[str, ...]
    fix: str | None
    notes: tuple[str, ...] = ()


def _slip(
    written: Scalar,
    around: Span,
    words: Sequence[str],
    more: abc.Mapping[str, Collection[str]],
    right: abc.Mapping[str, Scalar],
    missing: Sequence[str],
    place: Place,
    table: BackendTable | None,
) -> _Slip:
    key = written.text
    beside = _beside(around, written, right.values())
    near = _nearest(key, [*words, *more.get(key, ())], beside)
    is_letter = bool(near) and distance(key.lower(), near[0].lower(), 1) <= 1
    advice = advice_for_key(key, words)
    # `top_k` is a word of its own, `if` where `of` is missing is none.
    if advice is not None and not (is_letter and near[0] in missing):
        return _Slip(tuple(name for name in near if name in advice), advice)
    named = [name for name in synonyms(key) if name in words]
    notes, hint = belongs(key, place, table, words)
    if not notes or named or (is_letter and near[0].lower() == key.lower()):
        return _Slip(near, offer(near))
    # A key of another place, a letter beside one of this place.
    return _Slip(near, offer(near), notes) if is_letter else _Slip((), hint, notes)


def _may_be_meant(name: str) -> str:
    return f"`{name}` is missing here: if that is meant, write `{name}`"


def _expected(written: str, allowed: Collection[str], slip: _Slip) -> str | None:
    """The keys of the place where nothing better is known, or what a meant one takes."""
    if slip.notes or slip.fix:
        fields = allowed if isinstance(allowed, abc.Mapping) else {}
        declared = fields.get(slip.meant[0]) if len(slip.meant) == 1 else None
        if isinstance(declared, Field) and "enum" in declared.schema:
            return f"`{declared.name}`: {describe(declared.schema)}"
        return None
    return f"one of {listed(nearest_first(written, sorted(allowed)))}" if allowed else "no key here"


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
