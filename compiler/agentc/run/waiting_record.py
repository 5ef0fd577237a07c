"""Jobs of a run that wait in SLURM's queue, or are suspended there: a file that the run writes, and
`agentc status` and `why` read. Neighbours: slurm_waiting.py (writes), observe.py (shows)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from agentc.run.active import active_runs
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
