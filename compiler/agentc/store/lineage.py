"""Lineage: an object with everything that it was made from, read from manifests alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import StoredObject, read_object


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """`objects` stand children before parents, the object asked for first. `missing` are inputs
    that some manifest names and the store does not have (any more)."""

    objects: tuple[StoredObject, ...]
    missing: tuple[str, ...]


def trace(layout: StoreLayout, name: str) -> Lineage:
    """The lineage of a published object. Raises FileNotFoundError when there is none of that
    name, ValueError when its manifest cannot be read."""
    found: dict[str, StoredObject] = {name: read_object(layout, name)}
    missing: dict[str, None] = {}
    pending = [name]
    while pending:
        for parent in parents_of(found[pending.pop()]):
            if parent in found or parent in missing:
                continue
            try:
                found[parent] = read_object(layout, parent)
            except (OSError, ValueError):
                missing[parent] = None
            else:
                pending.append(parent)
    return Lineage(objects=_children_first(found, name), missing=tuple(sorted(missing)))


def parents_of(stored: StoredObject) -> tuple[str, ...]:
    """The objects that it was made from, each once."""
    inputs: Mapping[str, list[str]] = stored.manifest.get("inputs") or {}
    return tuple(dict.fromkeys(name for names in inputs.values() for name in names))


def seeds_of(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Every seed of the job's configuration, by dotted path."""
    return dict(_seeds(manifest.get("config") or {}, ""))


def tokens_of(manifest: Mapping[str, Any]) -> dict[str, int]:
    """What the job counted in tokens: `tokens`, `trained_tokens`, `prompt_tokens`, ..."""
    facts: Mapping[str, Any] = manifest.get("facts") or {}
    return {
        name: value
        for name, value in facts.items()
        if name.split("_")[-1] == "tokens" and isinstance(value, int)
    }


def versions_of(software: Mapping[str, Any]) -> tuple[dict[str, str], bool]:
    """Versions of an environment or a server as its manifest tells them, and whether they are
    what was really imported; manifests of older releases only know what was installed."""
    imported = software.get("imported")
    if isinstance(imported, dict):
        return imported, True
    return dict(software.get("versions") or {}), False


def _seeds(value: Any, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for name, item in sorted(value.items()):
            where = f"{path}.{name}" if path else name
            if (name == "seed" or name.endswith("_seed")) and isinstance(item, int):
                yield where, item
            else:
                yield from _seeds(item, where)


def _children_first(found: Mapping[str, StoredObject], name: str) -> tuple[StoredObject, ...]:
    """Topological, and otherwise by name, without recursion: a lineage may be thousands long."""
    parents = {one: [p for p in parents_of(stored) if p in found] for one, stored in found.items()}
    waiting = dict.fromkeys(found, 0)
    for names in parents.values():
        for parent in names:
            waiting[parent] += 1
    ordered: list[StoredObject] = []
    ready = [name]
    while ready:
        one = ready.pop()
        ordered.append(found[one])
        for parent in reversed(parents[one]):
            waiting[parent] -= 1
            if waiting[parent] == 0:
                ready.append(parent)
    return tuple(ordered)
