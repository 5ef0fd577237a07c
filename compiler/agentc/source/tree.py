"""The positioned tree that a YAML file becomes: scalars keep their text, style and place.

What a scalar means is decided later, by the type that is wanted there (`schema.coerce`).
Neighbours: `load.py` builds it, `scalars.py` reads scalars.
"""

from __future__ import annotations

from collections.abc import Mapping as TableOf
from dataclasses import dataclass
from typing import TypeAlias

from agentc.diagnostics.span import Span
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
