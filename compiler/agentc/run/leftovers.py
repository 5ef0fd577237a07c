"""Leftovers of a run that was killed: processes that still carry a mark of this store, staging
directories of work that is published, sessions whose members are gone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentc.runtime.machine import process
from agentc.runtime.store.layout import MANIFEST, StoreLayout
from agentc.runtime.store.object_lock import ObjectLock
from agentc.store.presence import staged_names


def end_leftover_processes(layout: StoreLayout) -> int:
    """End marked processes of this store whose wrapper is gone (its lock is free); returns how
    many. Work of another run that is alive is left alone."""
    suffix = process.mark("", str(layout.root))
    found = {pid: mark for pid, mark in process.marks().items() if mark.endswith(suffix)}
    # A shared server is nobody's child, and its host ends it (docs/design/shared_servers.md).
    hosted = {mark for pid, mark in found.items() if _has_host(pid)}
    names = {mark.rsplit("@", 1)[0] for mark in set(found.values()) - hosted}
    ended = 0
    for name in sorted(names):
        with _claimed(layout, name) as ours:
            if ours:
                ended += process.end_marked(process.mark(name, str(layout.root)))
    return ended


def remove_stale_folders(layout: StoreLayout, names: list[str], sessions: list[str]) -> None:
    """Remove staging directories that outlived their publication, and session objects that name
    members which are not in the store any more (they would hide that work is missing). What
    somebody works on is left alone."""
    staged = staged_names(layout)
    for name in names:
        if name in staged and layout.is_published(name):
            with _claimed(layout, name) as ours:
                if ours:
                    shutil.rmtree(layout.staging(name), ignore_errors=True)
    for name in sessions:
        manifest = layout.manifest(name)
        if manifest.exists() and not _members_exist(layout, manifest):
            with _claimed(layout, name) as ours:
                if ours:
                    manifest.unlink(missing_ok=True)
                    shutil.rmtree(layout.object(name), ignore_errors=True)


def _has_host(pid: int) -> bool:
    try:
        words = Path(f"/proc/{process.parent_of(pid)}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"agentc.runtime.serve" in words


@contextmanager
def _claimed(layout: StoreLayout, name: str) -> Iterator[bool]:
    """Whether the claim on an object is held in this block: not when somebody else has it."""
    claim = ObjectLock(layout, name)
    try:
        yield claim.attempt() is None
    finally:
        claim.release()


def _members_exist(layout: StoreLayout, manifest: Path) -> bool:
    try:
        members = json.loads(manifest.read_text(encoding="utf-8"))["members"].values()
    except PermissionError:
        return True  # another user's, who has not shared it: not ours to remove
    except (OSError, ValueError, KeyError, AttributeError):
        return False
    return all((layout.object(member) / MANIFEST).exists() for member in members)
