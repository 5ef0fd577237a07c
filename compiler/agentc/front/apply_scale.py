"""apply_scale: the spec made smaller (or larger) by one of its `scales:`.

Requires: a tree with templates in place.
Ensures: the tree with the overlay of the chosen scale merged over it. An overlay changes what is
there: the graph of stages stays the same, only its numbers and models differ.
"""

from __future__ import annotations

from agentc.diagnostics.odd_characters import plain
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.schema import language
from agentc.schema.keys import Place, as_mapping, checked_name, read_keys, tidied
from agentc.source.tree import Entry, Mapping, Node, Scalar, merge

_TABLES = ("models", "environments", "servers", "prompts", "stages")


def scale_names(root: Node | None) -> tuple[str, ...]:
    """The scales that a spec declares, in order."""
    entry = root.find("scales") if isinstance(root, Mapping) else None
    table = None if entry is None else entry.value
    return tuple(e.key.text for e in table.entries) if isinstance(table, Mapping) else ()


def apply_scale(root: Node, scale: str | None, sink: Sink) -> Node:
    """The tree at a scale; at None as it is written. Every overlay's outline is checked."""
    if not isinstance(root, Mapping):
        return root
    declared = root.find("scales")
    overlays: dict[str, Mapping] = {}
    if declared is not None:
        table = as_mapping(
            declared.value, Place("scales", "`scales`"), sink, "a mapping of names to overlays"
        )
        for entry in () if table is None else table.entries:
            checked_name(entry.key, "a scale", sink)
            overlay = _overlay(entry, root, sink)
            if overlay is not None:
                overlays[entry.key.text] = overlay
    if scale is None:
        return root
    known = scale_names(root)
    if declared is None and _misspelt("scales", root):
        return root
    if scale not in known:
        sink.error(
            "AGC431",
            f"the spec has no scale `{scale}`",
            expected=f"one of {listed(known)}" if known else "a spec with `scales:`",
            fix=did_you_mean(scale, known) if known else _example(scale, root),
        )
        return root
    chosen = overlays.get(scale)
    return root if chosen is None else merge(root, chosen)


def _example(scale: str, root: Mapping) -> str | None:
    """How a first scale of this spec could begin: with fewer tasks of a stage that has tasks."""
    found = root.find("stages")
    stages = found.value.entries if found is not None and isinstance(found.value, Mapping) else ()
    for stage in stages:
        if isinstance(stage.value, Mapping) and stage.value.find("split"):
            smaller = f"{{stages: {{{stage.key.text}: {{limit: 8}}}}}}"
            return f"begin one: `scales: {{{scale}: {smaller}}}`"
    return None


def _overlay(entry: Entry, root: Mapping, sink: Sink) -> Mapping | None:
    """The overlay as a tree to merge; what it would add instead of change is an error."""
    place = Place(f"scales.{entry.key.text}", f"scale `{entry.key.text}`")
    mapping = as_mapping(entry.value, place, sink, "a mapping such as `{params: {rounds: 1}}`")
    if mapping is None:
        return None
    keys = read_keys(mapping, language.SCALE_KEYS, place, sink, outline=True)
    found = []
    for key, part in keys.items():
        value = part.value
        if part.key.text != key:
            continue  # misspelt
        base = root.find(key)
        if key in ("params", *_TABLES) and base is None and _misspelt(key, root):
            continue
        if key == "params":
            value = _defaults(value, base, place, sink)
        elif key == "matrix" and base is None:
            sink.error(
                "AGC432",
                f"{place.what} has a `matrix`, and the spec has none",
                part.key.span,
                notes=("a scale makes the experiment smaller; what it sweeps over stays",),
                fix="sweep in the spec itself: `matrix:` at the top level",
            )
        elif key in _TABLES:
            _check_names(value, base, f"`{key}`", place, sink)
        found.append(Entry(part.key, value))
    return Mapping(tuple(found), mapping.span)


def _misspelt(section: str, root: Mapping) -> bool:
    """Whether the spec has the section under a name that `structure` refuses."""
    unknown = [e.key.text for e in root.entries if e.key.text not in language.TOP_LEVEL]
    return did_you_mean(section, [plain(name) for name in unknown]) is not None or any(
        plain(name) == section for name in unknown
    )


def _defaults(node: Node, base: Entry | None, place: Place, sink: Sink) -> Node:
    """`{rounds: 1}` as `{rounds: {default: 1}}`."""
    if not isinstance(node, Mapping):
        return node
    _check_names(node, base, "`params`", place, sink)
    return Mapping(
        tuple(
            Entry(each.key, Mapping((Entry(_default_key(each.key), each.value),), each.value.span))
            for each in node.entries
        ),
        node.span,
    )


def _default_key(key: Scalar) -> Scalar:
    return Scalar("default", False, key.span)


def _check_names(node: Node, base: Entry | None, what: str, place: Place, sink: Sink) -> None:
    known = base.value if base is not None else None
    if base is not None and not isinstance(known, Mapping):
        return  # that is the trouble, and `structure` says so
    names = [e.key.text for e in known.entries] if isinstance(known, Mapping) else []
    for each in node.entries if isinstance(node, Mapping) else ():
        if each.key.text not in names and any(tidied(name) == each.key.text for name in names):
            continue
        if each.key.text not in names:
            sink.error(
                "AGC432",
                f"{place.what} changes `{each.key.text}`, which {what} does not have",
                each.key.span,
                expected=f"one of {listed(names)}" if names else None,
                fix=did_you_mean(each.key.text, names),
            )
        elif isinstance(known, Mapping) and (below := known.find(each.key.text)) is not None:
            _check_rounds(each.value, below.value, place, sink)


def _check_rounds(node: Node, base: Node, place: Place, sink: Sink) -> None:
    """The stages that an overlay changes inside a repeat."""
    if not (isinstance(node, Mapping) and isinstance(base, Mapping)):
        return
    own, below = node.find("repeat"), base.find("repeat")
    if own is None or below is None or not isinstance(own.value, Mapping):
        return
    stages = own.value.find("stages")
    if _has_slip(base, "repeat") or _has_slip(below.value, "stages"):
        return  # what it has may stand there
    if stages is not None and isinstance(below.value, Mapping):
        _check_names(stages.value, below.value.find("stages"), "the repeat", place, sink)


def _has_slip(node: Node, key: str) -> bool:
    """Whether a mapping has a section under a name that is a misspelt `key`."""
    return isinstance(node, Mapping) and any(
        entry.key.text != key
        and isinstance(entry.value, Mapping)
        and did_you_mean(entry.key.text, [key]) is not None
        for entry in node.entries
    )
