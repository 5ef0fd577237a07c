"""`backends:` of a spec: code of its own, which runs in agentc itself. So it is loaded from folders
alone that the person who runs agentc allows for that, never because a spec names it.

Read before all else, for what a spec may say depends on its backends. Neighbour:
`agentc.backend_api.local`, which imports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from agentc.backend_api import Backend, BackendTable
from agentc.backend_api.local import LocalCodeError, load_local
from agentc.backend_api.table import BackendsBeside
from agentc.diagnostics import Sink
from agentc.source.boundary import CODE_VARIABLE
from agentc.source.tree import Mapping as MappingNode
from agentc.source.tree import Node, Scalar, described, items_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBackends:
    """The backends that a spec may name, its own among them; the text of its own by module, and
    `digests` of what it names by path. `whole` is false where some of its own are missing
    (reported): what it says of them cannot be understood then."""

    table: BackendTable
    code: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True


def with_local_backends(
    root: Node | None, table: BackendTable, directory: Path, allowed: Sequence[Path], sink: Sink
) -> LocalBackends:
    """Load what `backends:` names, from the folders `allowed`."""
    own: dict[str, Backend] = {}
    code: dict[str, Mapping[str, str]] = {}
    digests: dict[str, str] = {}
    named = list(_named(root))
    for item in named:
        if not isinstance(item, Scalar):
            sink.error(
                "AGC203",
                f"an item of `backends` cannot be {described(item)}",
                item.span,
                expected="the path of a Python file, or of a package's folder",
            )
            continue
        place = (directory / Path(item.text).expanduser()).resolve()
        if not any(place.is_relative_to(folder.resolve()) for folder in allowed):
            sink.error(
                "AGC758",
                f"`{item.text}` is code that would run in agentc itself",
                item.span,
                notes=("a check of somebody else's spec must run nothing of theirs",),
                fix="if you trust it, give the directory that holds it: `--allow-code DIR`, or "
                f"put it into {CODE_VARIABLE}",
            )
            continue
        try:
            loaded = load_local(place, BackendsBeside(own, table.backends))
        except LocalCodeError as error:
            sink.error("AGC759", f"`{item.text}` gives no backends: {error}", item.span)
            continue
        own |= {backend.id: backend for backend in loaded.backends}
        code[loaded.module] = loaded.texts
        text = json.dumps(sorted(loaded.texts.items()))
        digests[item.text] = sha256(text.encode("utf-8")).hexdigest()
    whole = len(digests) == len(named)
    if own:
        table = BackendTable(BackendsBeside(own, table.backends), table.broken)
    return LocalBackends(table=table, code=code, digests=digests, whole=whole)


def _named(root: Node | None) -> Iterator[Node]:
    entry = root.find("backends") if isinstance(root, MappingNode) else None
    if entry is not None:
        yield from items_of(entry.value)[0]
