"""Objects of a store: their manifests, their bytes, and the objects that they were made from."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.runtime.store.digests import damage_of, sha256_of
from agentc.runtime.store.layout import MANIFEST, StoreLayout


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A published object; `name` is `<kind>/<key>`."""

    name: str
    path: Path
    manifest: Mapping[str, Any]

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return size_of(self.path)


@dataclass(frozen=True, slots=True)
class Damage:
    """Damage: which object, which file of it (None: the object itself), and what is wrong."""

    object: str
    file: str | None
    message: str

    def __str__(self) -> str:
        place = self.object if self.file is None else f"{self.object}/{self.file}"
        return f"{place}: {self.message}"


def object_names(layout: StoreLayout) -> Iterator[str]:
    """Every folder under `objects/`, as `<kind>/<key>`, sorted; whole or not."""
    objects = layout.root / "objects"
    if not objects.is_dir():
        return
    for kind in sorted(_folders(objects)):
        for key in sorted(_folders(objects / kind)):
            yield f"{kind}/{key}"


def _folders(path: Path) -> list[str]:
    with os.scandir(path) as entries:
        return [e.name for e in entries if not e.name.startswith(".") and e.is_dir()]


def read_object(layout: StoreLayout, name: str) -> StoredObject:
    """A published object. Raises FileNotFoundError when there is none of that name, ValueError
    when its manifest cannot be read."""
    path = layout.object(name)
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}/{MANIFEST} cannot be read: {error}") from None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("files"), dict):
        raise ValueError(f"{name}/{MANIFEST} is no manifest")
    return StoredObject(name, path, manifest)


def list_objects(layout: StoreLayout) -> tuple[list[StoredObject], list[Damage]]:
    """All whole objects, and what is wrong with the others. An empty folder is no object (one may
    be made by Snakemake before a job) and no damage."""
    return read_objects(layout, object_names(layout))


def read_objects(
    layout: StoreLayout, names: Iterable[str]
) -> tuple[list[StoredObject], list[Damage]]:
    """The same for some names."""
    found: list[StoredObject] = []
    problems: list[Damage] = []
    for name in names:
        try:
            found.append(read_object(layout, name))
        except FileNotFoundError:
            if any(os.scandir(layout.object(name))):
                problems.append(Damage(name, MANIFEST, "the manifest is missing"))
        except ValueError as error:
            problems.append(Damage(name, MANIFEST, str(error)))
        except OSError as error:
            problems.append(Damage(name, MANIFEST, f"cannot be read: {error.strerror}"))
    return found, problems


def verify_object(stored: StoredObject) -> list[Damage]:
    """Compare the manifest with its own digest, and everything in the folder with the manifest:
    what was changed, is missing, or was added is a problem."""
    problems: list[Damage] = []

    def report(file: str, message: str) -> None:
        problems.append(Damage(stored.name, file, message))

    try:
        damage = damage_of((stored.path / MANIFEST).read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        damage = f"cannot be read: {error}"
    if damage is not None:
        report(MANIFEST, damage)
    manifest = stored.manifest
    if f"{manifest.get('kind')}/{manifest.get('key')}" != stored.name:
        report(MANIFEST, f"says it is {manifest.get('kind')}/{manifest.get('key')}")
    files: Mapping[str, str] = manifest["files"]
    links: Mapping[str, str] = manifest.get("links") or {}
    empty = set(manifest.get("empty") or ())
    present = _walk(stored.path)
    for name in sorted({*files, *links, *empty, *present} - {MANIFEST}):
        mode = present.get(name)
        path = stored.path / name
        if mode is None:
            report(name, "the folder is missing" if name in empty else "the file is missing")
        elif stat.S_ISDIR(mode):
            message = _damage_of_folder(path, name, manifest)
            if message is not None:
                report(name, message)
        elif stat.S_ISLNK(mode):
            if name in files:
                report(name, "a link is in the file's place")
            elif name not in links:
                report(name, "the manifest does not know this link")
            elif str(path.readlink()) != links[name]:
                report(name, "the link leads elsewhere")
        elif name not in files:
            report(name, "the manifest does not know this file")
        else:
            _compare(path, mode, files[name], name, report)
    return problems


def _damage_of_folder(path: Path, name: str, manifest: Mapping[str, Any]) -> str | None:
    """A folder where a file belongs, or that is empty and should not be, or the other way round."""
    if name in manifest["files"] or name in (manifest.get("links") or ()):
        return "a folder is in the file's place"
    empty = name in (manifest.get("empty") or ())
    # Version 1 did not list links and empty folders.
    if manifest.get("manifest") != 1 and not empty and not any(path.iterdir()):
        return "the manifest does not know this empty folder"
    return "the folder was empty" if empty and any(path.iterdir()) else None


def _compare(
    path: Path, mode: int, expected: str, name: str, report: Callable[[str, str], None]
) -> None:
    if not stat.S_ISREG(mode):
        # To open a pipe would wait for ever.
        report(name, "a pipe, socket or device is in the file's place")
        return
    try:
        found = sha256_of(path)
    except OSError as error:
        report(name, f"cannot be read: {error.strerror}")
    else:
        if found != expected:
            report(name, "the content was changed (sha256 differs)")


def _walk(folder: Path) -> dict[str, int]:
    """Everything below a folder, by relative path, with its mode; links are not followed."""
    found: dict[str, int] = {}
    pending = [folder]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False).st_mode
                path = Path(entry.path)
                found[path.relative_to(folder).as_posix()] = mode
                if stat.S_ISDIR(mode):
                    pending.append(path)
    return found


def size_of(folder: Path) -> int:
    """Bytes of all files under a folder; links count nothing."""
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )


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
