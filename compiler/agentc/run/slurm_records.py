"""What a run keeps in files about SLURM, for `agentc status` and `why` as well: which jobs wait in
the queue and why (until the run is over), and how SLURM ended a job (until its next attempt)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentc.program.job import write_json
from agentc.run.active_runs import active_runs
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder

SUSPENDED = "SUSPENDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """SLURM's words about a job, since when it waits (in seconds of the epoch), and what to change
    where no waiting helps; `server` names the shared server that is in the queue in its place."""

    number: str
    state: str
    reason: str
    since: float
    remedy: str = ""
    server: str = ""


@dataclass(frozen=True, slots=True)
class WaitingJobs:
    """Waiting jobs by id, and when that was written, by the clock of the store's files."""

    jobs: Mapping[str, Waiting]
    dated: float = 0.0


NOTHING = WaitingJobs({})


class WaitingRecord:
    """`waiting/<token>.json` of one run; written where something changed."""

    def __init__(self, layout: StoreLayout, label: str, token: str) -> None:
        self._path = _folder(layout, label) / f"{token}.json"
        self.now = NOTHING

    def write(self, jobs: Mapping[str, Waiting]) -> None:
        """These wait now. What a full disk does not take is shown by this run only."""
        if jobs == self.now.jobs:
            return
        self.now = WaitingJobs(dict(jobs), time.time())
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            text = json.dumps({name: asdict(one) for name, one in jobs.items()}, sort_keys=True)
            draft.write_text(text + "\n", encoding="utf-8")
            draft.replace(self._path)
            self.now = WaitingJobs(dict(jobs), self._path.stat().st_mtime)

    def remove(self) -> None:
        """The run is over."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def read_waiting(layout: StoreLayout, label: str, tokens: Iterable[str]) -> WaitingJobs:
    """What the runs of these tokens wrote last."""
    jobs: dict[str, Waiting] = {}
    dated = 0.0
    for token in tokens:
        path = _folder(layout, label) / f"{token}.json"
        with suppress(OSError, ValueError, TypeError, AttributeError):
            found = json.loads(path.read_text(encoding="utf-8"))
            jobs.update({name: Waiting(**one) for name, one in found.items()})
            dated = max(dated, path.stat().st_mtime)
    return WaitingJobs(jobs, dated)


@contextmanager
def waiting_record(layout: StoreLayout, label: str, token: str) -> Iterator[WaitingRecord]:
    """The record of a run while the block runs. What killed runs left is removed."""
    alive = {run.token for run in active_runs(layout, label) if run.is_alive()}
    with suppress(OSError):
        for path in _folder(layout, label).glob("*.json"):
            if path.stem not in alive:
                path.unlink(missing_ok=True)
    record = WaitingRecord(layout, label, token)
    try:
        yield record
    finally:
        record.remove()


def _folder(layout: StoreLayout, label: str) -> Path:
    return RunFolder.of(layout, label).path / "waiting"


FILE = "ending.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmEnding:
    """`state` is SLURM's word, or one of slurm_endings.py; `sentence` names job and state."""

    number: str
    state: str
    sentence: str
    cause: str
    remedy: str = ""


def write_ending(staging: Path, ending: SlurmEnding) -> None:
    """Keep it; a disk that is full or gone must not end the run that says so on its terminal."""
    with suppress(OSError):
        staging.mkdir(parents=True, exist_ok=True)
        value = asdict(ending)
        if read_dated(staging / FILE)[0] != value:
            write_json(staging / FILE, value)


def read_ending(staging: Path) -> tuple[SlurmEnding | None, float]:
    """What is there, and when it was written."""
    value, dated = read_dated(staging / FILE)
    try:
        return (SlurmEnding(**value), dated) if value else (None, 0.0)
    except TypeError:  # of another version
        return None, 0.0


def read_dated(path: Path) -> tuple[dict[str, Any], float]:
    """An object of JSON and when its file was written; ({}, 0) where there is none."""
    try:
        with path.open(encoding="utf-8") as file:
            dated = os.fstat(file.fileno()).st_mtime
            value = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}, 0.0
    return (value, dated) if isinstance(value, dict) else ({}, 0.0)
