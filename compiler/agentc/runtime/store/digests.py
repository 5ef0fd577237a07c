"""Digests: of files that a spec names but no store holds, such as a model directory, and of
manifests, which carry one of themselves.

Those of large files are remembered in the user's cache by size and time of change, because a model
of 13 GB takes half a minute to read and `agentc check` should take none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_CHUNK = 1 << 20
_WORTH_REMEMBERING = 1 << 24


class OutsideLinkError(Exception):
    """A link among the files leads to `place`, which is none of those that may be read."""

    def __init__(self, place: Path) -> None:
        super().__init__(f"{place} may not be read")
        self.place = place


def content_digest(path: Path, inside: Callable[[Path], bool] | None = None) -> str | None:
    """SHA-256 over relative names and contents of all files under `path` (or of the one file),
    in sorted order; hidden files and folders are left out. None when nothing is there, when it
    may not be read, or when a device, pipe or socket is among it.

    `inside` says of a link whether what it leads to may be read. Raises OutsideLinkError."""
    try:
        files = [path] if path.is_file() else sorted(_files(path))
        if not files:
            return None
        for file in files:
            if not file.exists():
                return None  # a link that leads nowhere, or to itself
            if inside is not None and file.is_symlink() and not inside(file):
                raise OutsideLinkError(file.resolve())
            if not file.is_file():
                return None  # to open a pipe would wait for ever
        known = _Remembered()
        parts = [[file.relative_to(path).as_posix(), known.digest(file)] for file in files]
        known.save()
    except OSError:
        return None
    text = json.dumps(parts, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _files(directory: Path) -> Iterable[Path]:
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(folder) / name for name in names if not name.startswith("."))


class _Remembered:
    """Digests of large files by (path, size, time of change in nanoseconds, inode)."""

    def __init__(self) -> None:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        self._path = Path(base) / "agentc" / "digests.json"
        self._known: dict[str, str] | None = None
        self._changed = False

    def digest(self, file: Path) -> str:
        state = file.stat()
        if state.st_size < _WORTH_REMEMBERING:
            return sha256_of(file)
        mark = f"{file.resolve()}:{state.st_size}:{state.st_mtime_ns}:{state.st_ino}"
        known = self._load()
        if mark not in known:
            known[mark] = sha256_of(file)
            self._changed = True
        return known[mark]

    def save(self) -> None:
        """Keep what was computed; a cache that cannot be written is no error."""
        if not self._changed:
            return
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(self._known), encoding="utf-8")
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):  # its folder may be none
                temporary.unlink()

    def _load(self) -> dict[str, str]:
        if self._known is None:
            try:
                value = json.loads(self._path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                value = {}
            self._known = value if isinstance(value, dict) else {}
        return self._known


def sha256_of(path: Path, sync: bool = False) -> str:
    """Sha256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while True:
            chunk = file.read(_CHUNK)
            if not chunk:
                break
            digest.update(chunk)
        if sync:
            os.fsync(file.fileno())
    return digest.hexdigest()


VERSION = 2
"""Since 2 a manifest has a `digest`, and tells `links` and `empty` folders where there are any."""


def manifest_text(value: Mapping[str, Any]) -> str:
    """The manifest as written."""
    bare = {name: entry for name, entry in value.items() if name != "digest"}
    return _text({**bare, "digest": _digest(bare)})


def damage_of(text: str) -> str | None:
    """What is wrong with the text of a manifest; None when it is as it was written. One of
    version 1 has no digest: it only has to be one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"cannot be read: {error}"
    if not isinstance(value, dict) or not isinstance(value.get("files"), dict):
        return "is no manifest"
    if value.get("manifest") == 1 and "digest" not in value:
        return None
    if value.get("digest") != _digest({k: v for k, v in value.items() if k != "digest"}):
        return "was changed (its digest differs)"
    return None if text == _text(value) else "was changed (it is laid out otherwise)"


def shape_of(folder: Path) -> dict[str, Any]:
    """What a folder holds beside files: where its links lead to, and folders without anything."""
    links: dict[str, str] = {}
    empty = []
    for place, folders, names in os.walk(str(folder)):
        for name in folders + names:
            path = Path(place, name)
            if path.is_symlink():
                links[path.relative_to(folder).as_posix()] = os.readlink(str(path))  # noqa: PTH115 (Python 3.8)
        if not folders and not names:
            empty.append(Path(place).relative_to(folder).as_posix())
    found: dict[str, Any] = {"links": links} if links else {}
    return {**found, "empty": sorted(empty)} if empty else found


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2) + "\n"


def _digest(bare: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(bare).encode("utf-8", "surrogatepass")).hexdigest()
