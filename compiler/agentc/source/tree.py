"""The positioned tree that a YAML file becomes: scalars keep their text, style and place. `merge`
puts a spec's tree over a template's, and a scale's over a spec's: mappings merge key by key,
everything else replaces.
"""

from __future__ import annotations

from collections.abc import Mapping as TableOf
from dataclasses import dataclass
from typing import TypeAlias

from agentc.diagnostics.diagnostic import Span
from agentc.diagnostics.sink import Sink
from agentc.kinds.field import Json


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A single value as written. `quoted`: it stood in quotes or in a block, so it is text.

    `closure` is set where the scalar is part of a template: its expressions mean the template's
    own parameters, not the params of the spec.
    """

    text: str
    quoted: bool
    span: Span
    closure: Closure | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """A list."""

    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One `key: value` of a mapping."""

    key: Scalar
    value: Node


@dataclass(frozen=True, slots=True, eq=False)
class Mapping:
    """A mapping in written order; keys are distinct. `partial`: an entry could not be read, which
    has been reported, so nothing can be said to be missing."""

    entries: tuple[Entry, ...]
    span: Span
    partial: bool = False

    def find(self, key: str) -> Entry | None:
        """The entry of that key, or None."""
        return next((entry for entry in self.entries if entry.key.text == key), None)


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """What an expression gave, in the place of the scalar that held it."""

    json: Json
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Unknown:
    """A value that could not be computed; the error is reported already, so nothing that
    follows from it should be."""

    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """A parameter of a template at one use of it: the node that gives its value (evaluated where
    it was written), and the JSON Schema that the value has to meet. `node` is None when the
    value is missing, which has been reported."""

    name: str
    node: Node | None
    rules: TableOf[str, Json]


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """What the names in a template's expressions stand for at one use of it."""

    template: str
    arguments: TableOf[str, Argument]


Node: TypeAlias = Scalar | Sequence | Mapping | Computed | Unknown


def described(node: Node) -> str:
    """What a node is, for messages: "a list", "a mapping", "the text `x`", "`2`"."""
    match node:
        case Sequence():
            return "a list"
        case Mapping():
            return "a mapping"
        case Scalar(text="", quoted=False):
            return "nothing"
        case Scalar(text=text, quoted=quoted):
            return f"the text `{shortened(text)}`" if quoted else f"`{shortened(text)}`"
        case Computed(json=str(text)):
            return f"the text `{shortened(text)}`"
        case Computed(json=list()):
            return "a list"
        case Computed(json=json):
            return f"`{shortened(written(json))}`"
        case Unknown():
            return "an unknown value"


def items_of(node: Node) -> tuple[tuple[Node, ...], bool]:
    """The nodes of a list, or the one node; and whether it is a list."""
    match node:
        case Sequence(items=items):
            return items, True
        case Computed(json=list(values)):
            return tuple(Computed(value, node.span) for value in values), True
    return (node,), False


def text_of(node: Node) -> str | None:
    """The text of a node that has any."""
    match node:
        case Scalar(text=text) if text:
            return text
        case Computed(json=str(text)):
            return text
    return None


def shortened(text: str, most: int = 40) -> str:
    """Text on one line, cut to `most` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 3] + "..."


def written(json: Json) -> str:
    """A JSON value as it would be written in a spec."""
    match json:
        case None:
            return "null"
        case bool():
            return "true" if json else "false"
        case list():
            return f"[{', '.join(written(item) for item in json)}]"
        case dict():
            return f"{{{', '.join(f'{key}: {written(item)}' for key, item in json.items())}}}"
        case _:
            return str(json)


def merge(base: Node, over: Node) -> Node:
    """`over` on top of `base`; every node keeps the place where it was written."""
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return over
    own = {entry.key.text: entry for entry in over.entries}
    entries = []
    for entry in base.entries:
        upper = own.pop(entry.key.text, None)
        if upper is None:
            entries.append(entry)
        else:
            value = merge(entry.value, upper.value)
            # Where both have a part, the key's place is the one that is open to change.
            entries.append(Entry(upper.key, value))
    return Mapping((*entries, *own.values()), over.span)


def append(base: Node, added: Node, sink: Sink, path: str = "append") -> Node:
    """The items of `added` behind the lists of `base` at the same keys."""
    match base, added:
        case Sequence(items=first), Sequence(items=more):
            return Sequence((*first, *more), added.span)
        case Mapping(), Mapping():
            below = {entry.key.text: entry for entry in base.entries}
            for entry in added.entries:
                found = below.get(entry.key.text)
                where = f"{path}.{entry.key.text}"
                if found is None:
                    sink.error(
                        "AGC425",
                        f"`{where}` has nothing to append to",
                        entry.key.span,
                        fix="write the list itself, without `append`",
                    )
                    continue
                below[entry.key.text] = Entry(
                    found.key, append(found.value, entry.value, sink, where)
                )
            return Mapping(tuple(below.values()), base.span)
    sink.error(
        "AGC425",
        f"`{path}` cannot append {described(added)} to {described(base)}",
        added.span,
        expected="a list here, and a list in the template",
    )
    return base
