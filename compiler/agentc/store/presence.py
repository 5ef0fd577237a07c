"""Which objects a store has, found with one listing for each kind instead of a look at each key.

A folder in the listing may be one that Snakemake made for a job that never finished; only its
manifest tells. Which folders were seen to hold theirs is remembered in `index.json` of the store,
by name and inode, so that a plan of ten thousand jobs over a filled store costs some dozen calls.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from agentc.runtime.store.file_system import refresh, visibility_timeout
from agentc.runtime.store.layout import StoreLayout

_WORTH_REMEMBERING = 16
"""So many looks at single objects are cheaper than writing the index."""


def find_published(layout: StoreLayout, names: Iterable[str], *, anew: bool = False) -> set[str]:
    """Those of the objects that the store has, whole. With `anew` this node asks the file server
    again rather than trust what it remembers of the folders.

    Raises OSError when the store cannot be read."""
    wanted: dict[str, list[str]] = {}
    for name in names:
        kind, _, key = name.partition("/")
        wanted.setdefault(kind, []).append(key)
    index = Index(layout)
    found: set[str] = set()
    for kind, keys in wanted.items():
        folder = layout.root / "objects" / kind
        if anew and visibility_timeout(layout) > 0 and folder.is_dir():
            refresh(folder)
        there = _listing(folder)
        index.forget_but(kind, there)
        for key in keys:
            inode = there.get(key)
            if inode is None:
                continue
            if index.knows(kind, key, inode):
                found.add(f"{kind}/{key}")
            elif layout.is_published(f"{kind}/{key}"):
                found.add(f"{kind}/{key}")
                index.add(kind, key, inode)
    index.save()
    return found


def listed_names(layout: StoreLayout, kinds: Iterable[str]) -> set[str]:
    """What has a folder among the objects of these kinds, whole or not."""
    objects = layout.root / "objects"
    return {f"{kind}/{key}" for kind in set(kinds) for key in _listing(objects / kind)}


def staged_names(layout: StoreLayout) -> set[str]:
    """Objects that somebody works on or has begun, `<kind>/<key>`."""
    staging = layout.root / "staging"
    return {f"{kind}/{key}" for kind in _listing(staging) for key in _listing(staging / kind)}


class Index:
    """`index.json`: folders that were seen to be whole. Losing it costs time, nothing else."""

    def __init__(self, layout: StoreLayout) -> None:
        self._path = layout.root / "index.json"
        self._known = _read(self._path)
        self._news = 0
        self._gone = 0

    def knows(self, kind: str, key: str, inode: int) -> bool:
        """Whether this very folder was seen to be whole."""
        return self._known.get(kind, {}).get(key) == inode

    def add(self, kind: str, key: str, inode: int) -> None:
        """Remember a folder."""
        self._known.setdefault(kind, {})[key] = inode
        self._news += 1

    def forget_but(self, kind: str, there: dict[str, int]) -> None:
        """Forget folders that are not there any more: another may get their inode."""
        known = self._known.get(kind)
        if known:
            kept = {key: inode for key, inode in known.items() if there.get(key) == inode}
            self._gone += len(known) - len(kept)
            self._known[kind] = kept

    def save(self) -> None:
        """Write it where that is worth it; an index that cannot be written is no error."""
        if not self._gone and self._news < _WORTH_REMEMBERING:
            return
        draft = self._path.with_name(f".index-{os.uname().nodename}-{os.getpid()}.tmp")
        try:
            draft.write_text(json.dumps(self._known, sort_keys=True), encoding="utf-8")
            draft.replace(self._path)
        except OSError:
            draft.unlink(missing_ok=True)


def _listing(folder: Path) -> dict[str, int]:
    """Names in a folder with their inodes, hidden ones left out; none where it is not there."""
    try:
        with os.scandir(folder) as entries:
            return {e.name: e.inode() for e in entries if not e.name.startswith(".")}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _read(path: Path) -> dict[str, dict[str, int]]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(value, dict) or not all(isinstance(keys, dict) for keys in value.values()):
        return {}
    return value
