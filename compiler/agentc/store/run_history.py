"""What was run with a store: each variant of each experiment, its history, the plans that count,
whose each object is, and which plans active runs use.
"""

from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentc.program.artifact_files import REPORT_PAGE
from agentc.runtime.store import object_lock
from agentc.runtime.store.file_system import now_at, refresh
from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import read_object
from agentc.store.paths import RunFolder, Variant, run_folders, variant_of

_NO_PLAN = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading JSON that is no plan meets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """What a plan names: `objects` with the job that makes each, and the digests of the locks of
    its software stacks."""

    variant: Variant
    params: Mapping[str, Any]
    objects: Mapping[str, str]
    targets: tuple[str, ...]
    software: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
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


def list_runs(layout: StoreLayout) -> list[PastRun]:
    """All of them, the latest first, but for `damaged_runs`."""
    found = []
    for began, folder in run_folders(layout):
        with suppress(ValueError):
            facts = read_facts(folder.last_plan)
            found.append(
                PastRun(folder=folder, began=began, variant=facts.variant, params=facts.params)
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
    plans: dict[Path, None] = {}
    covered: set[str] = set()
    older: dict[str, list[Path]] = {}
    for _, folder in run_folders(layout):
        marked, unmarked = _recorded_plans(layout, folder, count)
        covered |= {_group(read_facts(path)) for path in marked}
        plans.update(dict.fromkeys(marked))
        for path in unmarked:
            if path.is_file():
                facts = read_facts(path)
                complete = older.setdefault(_group(facts), [])
                if path not in complete and len(complete) < count and is_complete(layout, facts):
                    complete.append(path)
    for group, paths in older.items():
        if group not in covered:
            plans.update(dict.fromkeys(paths))
    return list(plans)


def _recorded_plans(
    layout: StoreLayout, folder: RunFolder, count: int
) -> tuple[list[Path], list[Path]]:
    """The last `count` plans that a history has as complete, and those of which it does not say
    whether they were."""
    marked: dict[Path, None] = {}
    closed: set[Path] = set()
    lines = read_history(folder)
    if _damaged_lines(folder):
        # A line that cannot be read may be all that says of a plan that it was complete.
        listed = {line.get("plan") for line in lines if line.get("complete")}
        others = {*folder.stored_plans()} - {folder.stored_plan(str(plan)) for plan in listed}
        marked.update((path, None) for path in others if is_complete(layout, read_facts(path)))
    # Of an agentc that knew of no variants: what had one name lies in one folder.
    unmarked = [folder.previous_plan]
    for line in reversed(lines):
        if not line.get("plan"):
            continue
        path = folder.stored_plan(str(line["plan"]))
        if "complete" not in line:
            unmarked.insert(-1, path)
        elif line["complete"] and len(closed) < count:
            marked[path] = None
            # Of a run that was killed nobody knows when it got so far: it counts besides.
            if line.get("ended") is not None:
                closed.add(path)
    return list(marked), unmarked


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
        software=frozenset(entry["lock"][:16] for entry in plan["software"].values()),
    )


def _objects(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for job in plan["jobs"]:
        yield f"{job['kind']}/{job['key']}", str(job["id"])
    for session in plan.get("sessions") or []:
        yield f"session/{session['key']}", str(session["id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """`label` is empty where no plan that was kept names the object."""

    label: str
    job: str


def find_owners(layout: StoreLayout, names: Collection[str]) -> dict[str, Owner]:
    """Who has had these objects made, by their names; of several the one run last."""
    found: dict[str, Owner] = {}
    wanted = set(names)
    for _, folder in run_folders(layout):
        for plan in (folder.last_plan, folder.previous_plan, *folder.stored_plans()):
            if not wanted - set(found):
                return found
            with suppress(ValueError):
                for name, job in read_facts(plan).objects.items():
                    if name in wanted and name not in found:
                        found[name] = Owner(label=folder.label, job=job)
    for name in wanted - set(found):
        job = ""
        with suppress(OSError, ValueError):
            job = str(read_object(layout, name).manifest.get("id") or "")
        found[name] = Owner(label="", job=job)
    return found


def reports_of(layout: StoreLayout, names: Collection[str]) -> list[tuple[Path, bool]]:
    """Pages that people may have kept the path of and whose results are among these objects; with
    each whether it goes itself."""
    pages = [
        (page, True)
        for name in sorted(names)
        if (page := layout.data(name) / REPORT_PAGE).is_file()
    ]
    for _, folder in run_folders(layout):
        with suppress(OSError, ValueError, AttributeError):
            source = json.loads(folder.report_source.read_text(encoding="utf-8")).get("object")
            if source in names and folder.report.is_file():
                pages.append((folder.report, False))
    return pages


_QUIET_S = 900.0
"""A run on another machine that was not heard of for so long is over."""
_BEAT_S = 10.0


@contextmanager
def plan_in_use(folder: RunFolder, plan: str) -> Iterator[Path]:
    """Says that the kept plan (by digest) is in use while the block runs."""
    record = object_lock.describe_self("run", ())
    path = folder.in_use / f"{record['host']}-{record['pid']}-{record['nonce']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps({**record, "plan": plan}, sort_keys=True) + "\n", encoding="utf-8")
    draft.rename(path)
    over = threading.Event()
    renewer = threading.Thread(target=_renew, args=(path, over), daemon=True)
    renewer.start()
    try:
        yield path
    finally:
        over.set()
        renewer.join()
        # Of a store that fails now the run has told already; its record is found to be old later.
        with suppress(OSError):
            path.unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanUse:
    """A run's word that it uses a plan; not `alive` where the run was killed."""

    path: Path
    plan: Path
    alive: bool


def plan_uses(folder: RunFolder) -> list[PlanUse]:
    """Of the runs of a variant that are going on, or may be, and of those that were killed.

    Raises ValueError when a file cannot be read: nobody could tell whose objects are garbage."""
    refresh(folder.in_use)
    try:
        # Not `glob`, for which a folder that it cannot list is an empty one.
        paths = sorted(folder.in_use.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ValueError(f"{folder.in_use} cannot be read ({error})") from None
    now = now_at(folder.in_use)
    found = []
    for path in (path for path in paths if path.suffix == ".json"):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            quiet = now - path.stat().st_mtime
            alive = not object_lock.is_gone(record) and quiet < _QUIET_S
        except FileNotFoundError:
            continue
        except (OSError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} cannot be read ({error})") from None
        plan = folder.stored_plan(str(record.get("plan")))
        found.append(PlanUse(path=path, plan=plan, alive=alive))
    return found


def _renew(path: Path, over: threading.Event) -> None:
    while not over.wait(_BEAT_S):
        with suppress(OSError):
            path.touch()
