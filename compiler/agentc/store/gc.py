"""Garbage collection: what no experiment's last plan names can be deleted.

Roots are the plans in `runs/<name>/last-plan.json`. Nothing is deleted while a job is at work.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentc.runtime.layout import StoreLayout
from agentc.store.objects import object_names, size_of
from agentc.store.paths import RunFolder, run_names


class StoreBusyError(Exception):
    """Jobs are at work in the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """What can go, each with its size in bytes: objects and staging directories by
    `<kind>/<key>`, software environments by digest."""

    objects: dict[str, int] = field(default_factory=dict)
    staging: dict[str, int] = field(default_factory=dict)
    environments: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes altogether."""
        parts = (self.objects, self.staging, self.environments)
        return sum(sum(part.values()) for part in parts)

    def __bool__(self) -> bool:
        return bool(self.objects or self.staging or self.environments)


def find_garbage(layout: StoreLayout, *, environments: bool = False) -> Garbage:
    """What no last plan reaches, and staging directories of work that is published or that no
    plan asks for. With `environments`, software environments that no last plan uses, too (those
    of a shared AGENTC_ENVIRONMENTS folder are never touched).

    Raises ValueError when a last plan cannot be read: its objects would look like garbage.
    """
    plans = [_read_plan(RunFolder.of(layout, name).last_plan) for name in run_names(layout)]
    reachable = {name for plan in plans for name in plan_objects(plan)}
    objects = {
        name: size_of(layout.object(name)) for name in object_names(layout) if name not in reachable
    }
    staging = {
        name: size_of(layout.staging(name))
        for name in _staged(layout)
        if name not in reachable or layout.is_published(name)
    }
    unused: dict[str, int] = {}
    own = layout.root / "environments"
    if environments and own.is_dir():
        used = {entry["lock"][:16] for plan in plans for entry in plan["environments"].values()}
        unused = {
            path.name: size_of(path)
            for path in sorted(own.iterdir())
            if path.is_dir() and path.name not in used
        }
    return Garbage(objects=objects, staging=staging, environments=unused)


def collect(layout: StoreLayout, garbage: Garbage) -> None:
    """Delete it. Raises StoreBusyError when a job of the store is at work."""
    busy = busy_locks(layout)
    if busy:
        raise StoreBusyError(f"{busy[0]} is being worked on; try again when the run is over")
    trash = layout.root / "trash"
    doomed: list[Path] = [layout.object(name) for name in garbage.objects]
    doomed += [layout.staging(name) for name in garbage.staging]
    doomed += [layout.root / "environments" / name for name in garbage.environments]
    for number, path in enumerate(doomed):
        # Out of sight by one rename, so that an interruption never leaves half an object.
        trash.mkdir(exist_ok=True)
        out_of_sight = trash / f"{number}-{path.name}"
        shutil.rmtree(out_of_sight, ignore_errors=True)
        path.rename(out_of_sight)
        shutil.rmtree(out_of_sight)
    shutil.rmtree(trash, ignore_errors=True)


def plan_objects(plan: dict[str, Any]) -> set[str]:
    """Every object that a plan (plan.json, decoded) names."""
    jobs = {f"{job['kind']}/{job['key']}" for job in plan["jobs"]}
    return jobs | {f"session/{session['key']}" for session in plan.get("sessions") or []}


def busy_locks(layout: StoreLayout) -> list[str]:
    """Names of locks (`<kind>-<key>`) that somebody holds."""
    folder = layout.root / "locks"
    locks = sorted(folder.glob("*.lock")) if folder.is_dir() else []
    return [path.stem for path in locks if is_held(path)]


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


def _staged(layout: StoreLayout) -> Iterable[str]:
    staging = layout.root / "staging"
    if staging.is_dir():
        for path in sorted(staging.glob("*/*")):
            yield f"{path.parent.name}/{path.name}"


def _read_plan(path: Path) -> dict[str, Any]:
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} cannot be read ({error}); nothing was deleted") from None
    assert isinstance(plan, dict)
    return plan
