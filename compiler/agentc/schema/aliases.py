"""Aliases: keys that other tools call differently are accepted, with a note that names ours.

Those of inputs are declared beside what they name (`Role.aliases`), those of settings in
`standard_names.py`.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Iterable

from agentc.diagnostics.sink import Sink
from agentc.kinds.field import Field
from agentc.kinds.kind import Kind
from agentc.schema.keys import Place
from agentc.schema.standard_names import standard_names
from agentc.source.tree import Entry, Mapping, Scalar


def aliases_of(kind: Kind) -> dict[str, str]:
    """The aliases of a kind's keys, with the key that each means."""
    inputs = {alias: role.name for role in kind.roles for alias in role.aliases}
    return {**standard_names([field.name for field in kind.fields]), **inputs}


def without_standard_names(
    node: Mapping, fields: Iterable[Field], place: Place, sink: Sink
) -> Mapping:
    """The mapping with the standard names in its groups of settings (`lora`, `decode`) replaced."""
    groups = {field.name: [inner.name for inner in field.fields] for field in fields}
    entries = []
    for entry in node.entries:
        names = standard_names(groups.get(entry.key.text, ()))
        value = entry.value
        if names and isinstance(value, Mapping):
            key = entry.key.text
            inner = Place(f"{place.path}.{key}", f"`{key}` of {place.what}", place.steps)
            value = without_aliases(value, names, inner, sink)
        entries.append(entry if value is entry.value else Entry(entry.key, value))
    return Mapping(tuple(entries), node.span, node.partial)


def without_aliases(
    node: Mapping, aliases: abc.Mapping[str, str], place: Place, sink: Sink
) -> Mapping:
    """The mapping with every alias replaced by the key that it means. A note reports each; where
    the key is written too, an error does, and the alias is dropped."""
    if not any(entry.key.text in aliases for entry in node.entries):
        return node
    written = {entry.key.text: entry.key for entry in node.entries}
    entries = []
    for entry in node.entries:
        alias, name = entry.key.text, aliases.get(entry.key.text)
        if name is None:
            entries.append(entry)
        elif name in written:
            sink.error(
                "AGC104",
                f"{place.what} has `{name}` and its alias `{alias}`",
                entry.key.span,
                fix=f"keep `{name}`, remove `{alias}`",
                steps=place.steps,
            )
        else:
            sink.note(
                "AGC215",
                f"`{alias}` is called `{name}` here",
                entry.key.span,
                fix=f"write `{name}`",
                steps=place.steps,
            )
            written[name] = entry.key
            key = Scalar(name, entry.key.quoted, entry.key.span, entry.key.closure)
            entries.append(Entry(key, entry.value))
    return Mapping(tuple(entries), node.span, node.partial)
