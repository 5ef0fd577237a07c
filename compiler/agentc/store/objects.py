"""Objects of a store: read their manifests, list them, verify their bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.runtime.layout import MANIFEST, StoreLayout
from agentc.runtime.publish import sha256_of


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
class Problem:
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
    for kind in sorted(entry for entry in objects.iterdir() if entry.is_dir()):
        for key in sorted(entry for entry in kind.iterdir() if entry.is_dir()):
            yield f"{kind.name}/{key.name}"


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


def list_objects(layout: StoreLayout) -> tuple[list[StoredObject], list[Problem]]:
    """All whole objects, and what is wrong with the others. A folder without a manifest is no
    object (an empty one may be made by Snakemake before a job) and no damage."""
    found: list[StoredObject] = []
    problems: list[Problem] = []
    for name in object_names(layout):
        try:
            found.append(read_object(layout, name))
        except FileNotFoundError:
            continue
        except ValueError as error:
            problems.append(Problem(name, MANIFEST, str(error)))
    return found, problems


def verify_object(stored: StoredObject) -> list[Problem]:
    """Compare every file with the manifest: changed, missing, and extra files are problems."""
    kind, key = stored.name.split("/")
    problems: list[Problem] = []
    if (stored.manifest.get("kind"), stored.manifest.get("key")) != (kind, key):
        message = f"says it is {stored.manifest.get('kind')}/{stored.manifest.get('key')}"
        problems.append(Problem(stored.name, MANIFEST, message))
    expected: Mapping[str, str] = stored.manifest["files"]
    present = {
        path.relative_to(stored.path).as_posix(): path
        for path in stored.path.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    present.pop(MANIFEST, None)
    for name in sorted(set(expected) | set(present)):
        path = present.get(name)
        if path is None:
            problems.append(Problem(stored.name, name, "the file is missing"))
        elif name not in expected:
            problems.append(Problem(stored.name, name, "the manifest does not know this file"))
        elif path.is_symlink() or sha256_of(path) != expected[name]:
            problems.append(Problem(stored.name, name, "the content was changed (sha256 differs)"))
    return problems


def size_of(folder: Path) -> int:
    """Bytes of all files under a folder; links count nothing."""
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )
