"""Leftovers of a run that was killed: processes that still carry a mark of this store, staging
directories of work that is published, sessions whose members are gone."""

from __future__ import annotations

import fcntl
import json
import shutil
from pathlib import Path

from agentc.runtime import process
from agentc.runtime.layout import MANIFEST, StoreLayout


def end_leftover_processes(layout: StoreLayout) -> int:
    """End marked processes of this store whose wrapper is gone (its lock is free); returns how
    many. Work of another run that is alive is left alone."""
    suffix = process.mark("", str(layout.root))
    names = {mark.rsplit("@", 1)[0] for mark in process.marks().values() if mark.endswith(suffix)}
    ended = 0
    for name in sorted(names):
        lock = layout.lock(name)
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            ended += process.end_marked(process.mark(name, str(layout.root)))
    return ended


def remove_stale_folders(layout: StoreLayout, names: list[str], sessions: list[str]) -> None:
    """Remove staging directories that outlived their publication, and session objects that name
    members which are not in the store any more (they would hide that work is missing)."""
    for name in names:
        staging = layout.staging(name)
        if staging.exists() and layout.is_published(name):
            shutil.rmtree(staging, ignore_errors=True)
    for name in sessions:
        manifest = layout.manifest(name)
        if manifest.exists() and not _members_exist(layout, manifest):
            manifest.unlink(missing_ok=True)
            shutil.rmtree(layout.object(name), ignore_errors=True)


def _members_exist(layout: StoreLayout, manifest: Path) -> bool:
    try:
        members = json.loads(manifest.read_text(encoding="utf-8"))["members"].values()
    except (OSError, ValueError, KeyError, AttributeError):
        return False
    return all((layout.object(member) / MANIFEST).exists() for member in members)
