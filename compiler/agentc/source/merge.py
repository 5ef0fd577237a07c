"""Merging of trees: what a spec says over what a template says, a scale over a spec.

One rule: mappings merge key by key, everything else replaces. Neighbour: `tree.py`.
"""

from __future__ import annotations

from agentc.diagnostics.sink import Sink
from agentc.source.tree import Entry, Mapping, Node, Sequence, described


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
