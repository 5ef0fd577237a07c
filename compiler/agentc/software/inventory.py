"""What lies in the folder of software stacks: built ones, half-built ones, their names, and
their removal, by one rename.

A folder knows only its lock's digest; names come from installed backends and from the last plans
of the store.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentc.runtime.software.job_software import COMPLETE, read_complete, read_record
from agentc.runtime.store.layout import StoreLayout
from agentc.software.requirements import Needed
from agentc.store.gc import is_held
from agentc.store.objects import size_of
from agentc.store.paths import RunFolder, run_names

State = Literal["ready", "incomplete", "being built", "half-built", "no interpreter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A stack's folder. `digest` is its name there; `names` and `users` (backends and
    experiments) are empty where nobody is known to use it. `record` is its `complete.json`, empty
    for one that is not whole; `used` is when it was last used (seconds since the epoch)."""

    digest: str
    path: Path
    state: State
    names: tuple[str, ...]
    users: tuple[str, ...]
    record: Mapping[str, Any]
    used: float | None

    @property
    def label(self) -> str:
        """What people call it."""
        return ", ".join(self.names) or self.digest

    def size(self) -> int:
        """Bytes of all its files, as when it was built; looks at each where that is not known."""
        recorded = self.record.get("size")
        return recorded if isinstance(recorded, int) else size_of(self.path)


def list_installed(layout: StoreLayout, needed: Iterable[Needed]) -> tuple[Installed, ...]:
    """Everything in the folder of software stacks, by name. `needed` are those of backends
    that are installed."""
    names: dict[str, set[str]] = {}
    users: dict[str, set[str]] = {}
    for one in needed:
        names.setdefault(one.sha256[:16], set()).add(one.name)
        users.setdefault(one.sha256[:16], set()).update(one.users)
    for experiment in run_names(layout):
        for name, digest in _software_of(RunFolder.of(layout, experiment).last_plan):
            names.setdefault(digest, set()).add(name)
            users.setdefault(digest, set()).add(f"experiment {experiment}")
    folder = layout.software
    found = [
        _installed(path, sorted(names.get(path.name, ())), sorted(users.get(path.name, ())))
        for path in (sorted(folder.iterdir()) if folder.is_dir() else ())
        if path.is_dir() and _is_digest(path.name)
    ]
    return tuple(sorted(found, key=lambda one: (not one.names, one.label)))


def find_installed(found: Iterable[Installed], name: str) -> list[Installed]:
    """Those that a name or the first digits of a digest (six or more) mean."""
    return [
        one
        for one in found
        if name in one.names or (len(name) >= 6 and one.digest.startswith(name.lower()))
    ]


def _installed(path: Path, names: list[str], users: list[str]) -> Installed:
    record = read_record(path) or {}
    used: float | None = None
    with suppress(OSError):
        used = (path / COMPLETE).stat().st_mtime
    state: State = "ready"
    if not record:
        state = "being built" if is_held(path.with_name(path.name + ".lock")) else "half-built"
    elif read_complete(path) is None:
        state = "no interpreter"
    elif not record.get("complete", True):
        state = "incomplete"
    return Installed(
        digest=path.name,
        path=path,
        state=state,
        names=tuple(names),
        users=tuple(users),
        record=record,
        used=used,
    )


def _software_of(plan: Path) -> list[tuple[str, str]]:
    try:
        document = json.loads(plan.read_text(encoding="utf-8"))
        entries = document["software"].items()
        return [(name, entry["lock"][:16]) for name, entry in entries]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _is_digest(name: str) -> bool:
    return len(name) == 16 and all(letter in "0123456789abcdef" for letter in name)


UNUSED_DAYS = 30


class SoftwareInUseError(Exception):
    """A process works in the stack, or somebody builds it."""


def unused(found: Iterable[Installed], days: float = UNUSED_DAYS) -> tuple[Installed, ...]:
    """Those that no installed backend and no last plan names, and that nobody (other stores may
    share the folder) has used for so many days; half-built ones at once."""
    since = time.time() - days * 86400
    return tuple(
        one
        for one in found
        if one.state == "half-built"
        or (not one.users and one.state != "being built" and (one.used or 0.0) <= since)
    )


def remove_software(one: Installed) -> None:
    """Delete it. Raises SoftwareInUseError."""
    busy = _process_in(one.path)
    if busy is not None:
        raise SoftwareInUseError(f"process {busy} runs in {one.label} ({one.path})")
    with one.path.with_name(one.digest + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SoftwareInUseError(f"{one.label} is being built") from None
        trash = one.path.with_name(f".{one.digest}.trash")
        shutil.rmtree(trash, ignore_errors=True)
        one.path.rename(trash)
        shutil.rmtree(trash)


def _process_in(path: Path) -> int | None:
    """A process of this machine (and user) that was started with the stack's Python."""
    begins = f"{path}/bin/".encode()
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes().startswith(begins):
                    return int(entry.name)
            except OSError:
                continue
    return None
