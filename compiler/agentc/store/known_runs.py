"""What was run with a store: each variant of each experiment, its history, and the plans of it
that count (`roots.py` keeps their objects)."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder, run_folders
from agentc.store.variant import Variant, variant_of

_NO_PLAN = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading JSON that is no plan meets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """What a plan names: `objects` with the job that makes each, and the digests of the locks of
    its software environments."""

    variant: Variant
    params: Mapping[str, Any]
    objects: Mapping[str, str]
    targets: tuple[str, ...]
    environments: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRun:
    """A variant that was run; `began` is when its last run did."""

    folder: RunFolder
    began: float
    variant: Variant
    params: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The name of its folder."""
        return self.folder.label


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedRun:
    """A variant that was run and whose last plan cannot be read; `why` names the file."""

    folder: RunFolder
    began: float
    why: str

    @property
    def label(self) -> str:
        """The name of its folder."""
        return self.folder.label


def known_runs(layout: StoreLayout) -> list[KnownRun]:
    """All of them, the latest first, but for `damaged_runs`."""
    found = []
    for began, folder in run_folders(layout):
        with suppress(ValueError):
            facts = read_facts(folder.last_plan)
            found.append(
                KnownRun(folder=folder, began=began, variant=facts.variant, params=facts.params)
            )
    return found


def damaged_runs(layout: StoreLayout) -> list[DamagedRun]:
    """Those of which nobody can tell what they need: `gc` deletes nothing while there is one."""
    found = []
    for began, folder in run_folders(layout):
        try:
            read_facts(folder.last_plan)
        except ValueError as error:
            found.append(DamagedRun(folder=folder, began=began, why=str(error)))
    return found


def read_history(folder: RunFolder) -> list[dict[str, Any]]:
    """A line for each run, the oldest first, but for `history_damage`."""
    return [entry for _, entry in _history_lines(folder) if entry is not None]


def history_damage(folders: Iterable[RunFolder]) -> list[str]:
    """The lines of histories that cannot be read, each as a sentence with its file and number. The
    end of a file, which a kill may have cut off, is none."""
    return [
        f"{folder.history}:{number}: the record of a run cannot be read; what was complete of its"
        " plans is kept for it, until the line is removed"
        for folder in folders
        for number in _damaged_lines(folder)
    ]


def _damaged_lines(folder: RunFolder) -> list[int]:
    return [number for number, entry in _history_lines(folder)[:-1] if entry is None]


def _history_lines(folder: RunFolder) -> list[tuple[int, dict[str, Any] | None]]:
    """Each line with its number, None where it cannot be read; what follows the last newline is
    the last one."""
    try:
        data = folder.history.read_bytes()
    except FileNotFoundError:
        return []
    # Lines end with newlines alone, and what was cut off within a character is no text.
    return [(number, _entry(line)) for number, line in enumerate(data.split(b"\n"), 1)]


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line.decode("utf-8"))
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def complete_plans(layout: StoreLayout, count: int = 1) -> list[Path]:
    """Of each variant the last so many different plans all of whose targets were made.

    Raises ValueError when one cannot be read."""
    found: dict[Path, None] = {}
    covered: set[str] = set()
    older: dict[str, list[Path]] = {}
    for _, folder in run_folders(layout):
        own: dict[Path, None] = {}
        closed: set[Path] = set()
        lines = read_history(folder)
        if _damaged_lines(folder):
            # One that cannot be read may be all that says of a plan that it was complete.
            known = {line.get("plan") for line in lines if line.get("complete")}
            others = {*folder.kept_plans()} - {folder.kept_plan(str(plan)) for plan in known}
            own.update((path, None) for path in others if is_complete(layout, read_facts(path)))
        # Of an agentc that knew of no variants: what had one name lies in one folder.
        unmarked = [folder.previous_plan]
        for line in reversed(lines):
            if not line.get("plan"):
                continue
            path = folder.kept_plan(str(line["plan"]))
            if "complete" not in line:
                unmarked.insert(-1, path)
            elif line["complete"] and len(closed) < count:
                own[path] = None
                # Of a run that was killed nobody knows when it got so far: it counts besides.
                if line.get("ended") is not None:
                    closed.add(path)
        covered |= {_group(read_facts(path)) for path in own}
        found.update(own)
        for path in unmarked:
            if path.is_file():
                facts = read_facts(path)
                kept = older.setdefault(_group(facts), [])
                if path not in kept and len(kept) < count and is_complete(layout, facts):
                    kept.append(path)
    for group, paths in older.items():
        if group not in covered:
            found.update(dict.fromkeys(paths))
    return list(found)


def _group(facts: PlanFacts) -> str:
    variant = facts.variant
    return json.dumps([variant.name, variant.scale, facts.params], sort_keys=True)


def is_complete(layout: StoreLayout, facts: PlanFacts) -> bool:
    """Whether all that the plan is for has been made."""
    return bool(facts.targets) and all(layout.is_published(name) for name in facts.targets)


def read_facts(path: Path) -> PlanFacts:
    """Of a plan, packed or not. Raises ValueError when it cannot be read."""
    try:
        state = path.stat()
        return _facts(path, state.st_mtime_ns, state.st_size)
    except (OSError, zlib.error, EOFError, *_NO_PLAN) as error:
        raise ValueError(f"{path} cannot be read ({error})") from None


@lru_cache(maxsize=4096)
def _facts(path: Path, _changed: int, _size: int) -> PlanFacts:
    data = path.read_bytes()
    plan = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return PlanFacts(
        variant=variant_of(plan),
        params=plan.get("params") or {},
        objects=dict(_objects(plan)),
        targets=tuple(plan.get("targets") or ()),
        environments=frozenset(entry["lock"][:16] for entry in plan["environments"].values()),
    )


def _objects(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for job in plan["jobs"]:
        yield f"{job['kind']}/{job['key']}", str(job["id"])
    for session in plan.get("sessions") or []:
        yield f"session/{session['key']}", str(session["id"])
