"""Garbage collection: what no root names can be deleted, also while runs are active.

Roots are, of each variant that was run, the objects of its last plan and of its last complete ones,
those of the plans of active runs, and what any running wrapper makes or reads. Nothing is deleted
that somebody may be about to use: an object is first put out of sight under its lock; then roots
are looked up once more, and what they name comes back.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agentc.exit_codes import EXIT_STORE, CommandError
from agentc.runtime.store import object_lock
from agentc.runtime.store.file_system import now_at, refresh, visibility_timeout
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.object_lock import ObjectLock, read_records
from agentc.store.objects import object_names, size_of
from agentc.store.paths import RunFolder, all_folders, run_folders
from agentc.store.presence import staged_names
from agentc.store.run_history import complete_plans, is_complete, plan_uses, read_facts

_QUIET_S = 900.0
"""A wrapper on another machine that was not heard of for so long is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Objects that are needed, and the digests of the locks of software stacks."""

    objects: frozenset[str]
    software: frozenset[str]


def find_roots(layout: StoreLayout, but: Collection[str] = (), keep_runs: int = 1) -> Roots:
    """What is needed now, by others than the holders `but` (by nonce); `keep_runs` complete plans
    count of each variant. Raises ValueError when a plan cannot be read: its objects would look
    like garbage."""
    try:
        # Those at work first: a run that ends meanwhile has entered its plan into the history.
        uses = [use for folder in _reread_folders(layout) for use in plan_uses(folder)]
        paths = [use.plan for use in uses if use.alive or _was_finished(layout, use.plan)]
        paths += [folder.last_plan for _, folder in run_folders(layout)]
        paths += complete_plans(layout, keep_runs)
        plans = [read_facts(path) for path in dict.fromkeys(paths)]
    except ValueError as error:
        raise ValueError(
            f"{error}; nothing was deleted. A folder under {layout.root / 'runs'} that is removed"
            " takes its runs out of the reckoning"
        ) from None
    objects = {name for plan in plans for name in plan.objects}
    return Roots(
        objects=frozenset(objects | used_by_wrappers(layout, but)),
        software=frozenset(digest for plan in plans for digest in plan.software),
    )


def _reread_folders(layout: StoreLayout) -> list[RunFolder]:
    """Folders of runs, with those that another node has made a moment ago: a first run's."""
    if visibility_timeout(layout) <= 0:
        return all_folders(layout)
    refresh(layout.root / "runs")
    folders = all_folders(layout)
    for folder in folders:
        refresh(folder.path)
    return folders


def _was_finished(layout: StoreLayout, plan: Path) -> bool:
    """Whether a run that was killed had made all, which nobody has entered into the history yet."""
    return plan.is_file() and is_complete(layout, read_facts(plan))


def used_by_wrappers(layout: StoreLayout, but: Collection[str] = ()) -> set[str]:
    """What wrappers at work (those that plain Snakemake started too) make and read."""
    if visibility_timeout(layout) > 0:
        refresh(layout.root / "locks")
    used: set[str] = set()
    for record in read_records(layout, quiet_s=_QUIET_S):
        if record.get("nonce") not in but and not object_lock.is_gone(record):
            used |= {str(record.get("object")), *map(str, record.get("needs") or ())}
    return used


_AT_ONCE = 64
"""Claims that are held at a time; each keeps a file open."""
_OLD_S = 86400.0
COLLECTOR = "store-gc"
"""The claim of whoever collects: one at a time."""


class StoreBusyError(CommandError):
    """Somebody else collects garbage in the store."""

    exit_code = EXIT_STORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """What can go, each with its size in bytes: objects and staging directories by
    `<kind>/<key>`, software stacks by digest."""

    objects: dict[str, int] = field(default_factory=dict)
    staging: dict[str, int] = field(default_factory=dict)
    software: dict[str, int] = field(default_factory=dict)
    keep_runs: int = 1

    @property
    def size(self) -> int:
        """Bytes altogether."""
        parts = (self.objects, self.staging, self.software)
        return sum(sum(part.values()) for part in parts)

    def without(self, kept: Collection[str]) -> Garbage:
        """The same less what was kept."""
        return Garbage(
            objects={name: size for name, size in self.objects.items() if name not in kept},
            staging={name: size for name, size in self.staging.items() if name not in kept},
            software=self.software,
            keep_runs=self.keep_runs,
        )

    def __bool__(self) -> bool:
        return bool(self.objects or self.staging or self.software)


def find_garbage(
    layout: StoreLayout,
    *,
    software: bool = False,
    keep_runs: int = 1,
    older_than_s: float = 0.0,
) -> Garbage:
    """What no root reaches, and staging directories of work that is published or that nobody asks
    for. With `software`, software stacks that no plan uses, too (those of a shared
    AGENTC_SOFTWARE folder are never touched). `keep_runs` complete plans of each variant are
    roots; objects and staging that were touched less than `older_than_s` ago stay.

    Raises ValueError when a plan cannot be read: its objects would look like garbage.
    """
    roots = find_roots(layout, keep_runs=keep_runs)
    before = now_at(layout.root) - older_than_s if older_than_s > 0 else float("inf")
    objects = {
        name: size_of(layout.object(name))
        for name in object_names(layout)
        if name not in roots.objects and _touched(layout.object(name)) < before
    }
    staging = {
        name: size_of(layout.staging(name))
        for name in sorted(staged_names(layout))
        if (name not in roots.objects or layout.is_published(name))
        and _touched(layout.staging(name)) < before
    }
    unused: dict[str, int] = {}
    own = layout.root / "software"
    if software and own.is_dir():
        unused = {
            path.name: size_of(path)
            for path in sorted(own.iterdir())
            if path.is_dir() and path.name not in roots.software
        }
    return Garbage(objects=objects, staging=staging, software=unused, keep_runs=keep_runs)


def _touched(path: Path) -> float:
    """When; of what somebody has removed this moment, long ago."""
    with suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0.0


def collect(layout: StoreLayout, garbage: Garbage) -> tuple[str, ...]:
    """Delete it; returns what was kept after all, because somebody works on it or needs it now.
    Raises StoreBusyError when another collects."""
    collector = ObjectLock(layout, COLLECTOR)
    trash = layout.root / "trash"
    try:
        if collector.attempt() is not None:
            raise StoreBusyError("garbage is being collected by another user")
        names = sorted({*garbage.objects, *garbage.staging})
        kept: list[str] = []
        for start in range(0, len(names), _AT_ONCE):
            kept += _collect_some(layout, garbage, names[start : start + _AT_ONCE], trash)
            collector.beat()
        for digest in garbage.software:
            if digest not in find_roots(layout, keep_runs=garbage.keep_runs).software:
                _drop(layout.root / "software" / digest, trash)
        _remove_drafts(layout)
        _remove_servers(layout)
        shutil.rmtree(trash, ignore_errors=True)
        return tuple(kept)
    finally:
        collector.release()


def _collect_some(
    layout: StoreLayout, garbage: Garbage, names: list[str], trash: Path
) -> list[str]:
    """Returns those of the names that were kept."""
    claims: list[ObjectLock] = []
    aside: dict[str, Path] = {}
    kept: list[str] = []
    try:
        for name in names:
            claim = ObjectLock(layout, name)
            if claim.attempt() is not None:
                claim.release()
                kept.append(name)
                continue
            claims.append(claim)
            if name in garbage.objects and layout.object(name).exists():
                aside[name] = _put_aside(layout.object(name), trash)
        # From here on a run that looks at the store does not see them; one that has looked is
        # registered.
        own = {str(claim.record["nonce"]) for claim in claims}
        needed = find_roots(layout, own, garbage.keep_runs).objects
        for claim in claims:
            name, place = claim.name, aside.get(claim.name)
            if place is not None and name in needed:
                place.rename(layout.object(name))
                kept.append(name)
                del aside[name]
            elif place is not None:
                del aside[name]
                claim.note_removed()
                shutil.rmtree(place, ignore_errors=True)
            if name in garbage.staging and (name not in needed or layout.is_published(name)):
                _drop(layout.staging(name), trash)
    except BaseException:
        # What was not decided on comes back: a run may have begun to count on it.
        for name, place in aside.items():
            with suppress(OSError):
                place.rename(layout.object(name))
        raise
    finally:
        for claim in claims:
            claim.release()
    return kept


def _put_aside(path: Path, trash: Path) -> Path:
    """Out of sight by one rename, so that an interruption never leaves half an object."""
    trash.mkdir(exist_ok=True)
    place = trash / f"{time.time_ns()}-{os.getpid()}-{path.name}"
    path.rename(place)
    return place


def _drop(path: Path, trash: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(_put_aside(path, trash), ignore_errors=True)


def _remove_drafts(layout: StoreLayout) -> None:
    """Drafts of owner files whose writer was killed between two lines."""
    for path in (layout.root / "locks").glob(".*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _OLD_S:
                path.unlink()


def _remove_servers(layout: StoreLayout) -> None:
    """What shared servers of this user have left: tokens, logs. One that lives beats every
    second."""
    for folder in (layout.root / "servers" / str(os.getuid())).glob("*"):
        with suppress(OSError):
            newest = max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
            if time.time() - newest > _OLD_S:
                shutil.rmtree(folder)


def is_held(lock: Path) -> bool:
    """Whether another process holds a flock on the file."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
