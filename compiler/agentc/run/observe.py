"""Observation of running jobs and shared servers, from the files that they leave in the store
(contracts.md, section 7), and the release of those servers at the end."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agentc.plan.work import Document, object_of
from agentc.program.artifact_files import PROGRESS_FILE
from agentc.program.job import read_json
from agentc.run.slurm_records import (
    NOTHING,
    SlurmEnding,
    Waiting,
    WaitingJobs,
    read_dated,
    read_ending,
)
from agentc.runtime.health import findings, stage_facts
from agentc.runtime.machine.output_filters import printable
from agentc.runtime.machine.process import is_stopped_message
from agentc.runtime.servers.server_log import last_lines
from agentc.runtime.servers.shared_server_files import CopyFolder, ServerFolder
from agentc.runtime.servers.shared_server_launch import end_unused, locked
from agentc.runtime.store.file_system import full_disk_hint, now_at
from agentc.runtime.store.layout import StoreLayout
from agentc.store.presence import listed_names, staged_names

State = Literal[
    "waiting", "queued", "software", "leases", "running", "checking", "done", "failed", "killed"
]
ACTIVE = ("software", "leases", "running", "checking")
_FULL_DISK = re.compile(r"cannot write .*: no space is left on its file system \(ENOSPC; .*")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSnapshot:
    """A job as seen at one moment. `rate` is in units a second, `remaining` in seconds."""

    id: str
    state: State
    message: str = ""
    done: float | None = None
    total: float | None = None
    unit: str = ""
    rate: float | None = None
    remaining: float | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    """What says that the job learned nothing (`agentc.runtime.health`)."""
    seconds: float | None = None
    queue: Waiting | None = None
    """Where its job, or the shared server that it needs, waits in SLURM's queue."""
    ending: SlurmEnding | None = None
    """How SLURM ended its last job, where that was not its program's doing."""

    def __post_init__(self) -> None:
        """Its texts come from programs and packages, and every view prints them."""
        object.__setattr__(self, "message", printable(self.message))
        for name in ("warnings", "health"):
            object.__setattr__(self, name, tuple(map(printable, getattr(self, name))))

    @property
    def active(self) -> bool:
        """Whether somebody works on it."""
        return self.state in ACTIVE

    @property
    def stopped(self) -> bool:
        """Whether somebody ended it (Ctrl-C, `agentc cancel`, `scancel`): no failure of its own."""
        cancelled = self.ending is not None and self.ending.state == "CANCELLED"
        return self.state == "failed" and (cancelled or is_stopped_message(self.message))


class Observer:
    """Looks at the jobs of a run again and again; `since` is when the run began: what staging
    directories tell about times before is old news. Files tell that by their own dates: the clock
    of a node may be minutes away from this one's. `waiting` has the jobs in SLURM's queue,
    `driver_log` the last words of wrappers."""

    def __init__(
        self,
        layout: StoreLayout,
        jobs: Iterable[Mapping[str, Any]],
        since: float,
        waiting: Callable[[], WaitingJobs] = lambda: NOTHING,
    ) -> None:
        self._layout = layout
        self.driver_log: Path | None = None
        self._waiting = waiting
        self._jobs = tuple(jobs)
        self._ahead = clock_ahead(layout.root) if since else 0.0
        self._since = since + self._ahead
        self._warned: dict[tuple[str, ...], str] = {}
        self._begun: set[str] = set()
        self._finished: dict[str, JobSnapshot] = {}
        self._first: dict[str, tuple[float, float]] = {}
        self._began: dict[str, float] = {}
        self._failures: dict[str, JobSnapshot] = {}
        self._requeued: dict[str, float] = {}

    def observe(self) -> tuple[JobSnapshot, ...]:
        """Every job, in the plan's order. One listing tells of thousands which to look at."""
        open_ones = [job for job in self._jobs if str(job["id"]) not in self._finished]
        there = listed_names(self._layout, (str(job["kind"]) for job in open_ones))
        there |= staged_names(self._layout) if open_ones else set()
        queued = self._waiting()
        seen = tuple(self._observe_job(job, there, queued) for job in self._jobs)
        for snapshot in seen:
            if snapshot.state in ("failed", "killed"):
                self._failures[snapshot.id] = snapshot
            elif snapshot.state == "done":
                self._failures.pop(snapshot.id, None)
        return seen

    def warnings(self) -> list[str]:
        """What wrappers warned of since the last call, once for each node, and programs of jobs
        that were seen before their end."""
        new = [text for text in self._warned.values() if text]
        self._warned = dict.fromkeys(self._warned, "")
        return new

    def failures(self) -> tuple[JobSnapshot, ...]:
        """Jobs that were seen to fail, and not to be done since: another run may be trying one of
        them again by now."""
        return tuple(self._failures.values())

    def _observe_job(
        self, job: Mapping[str, Any], there: set[str], queued: WaitingJobs
    ) -> JobSnapshot:
        name, job_id = object_of(job), str(job["id"])
        finished = self._finished.get(job_id)
        if finished is not None:
            return finished
        queue = queued.jobs.get(job_id)
        idle = JobSnapshot(id=job_id, state=_idle_state(queue), queue=queue)
        if name not in there:
            return idle
        if self._layout.is_published(name):
            return self._finish(job_id, read_json(self._layout.manifest(name)))
        staging = self._layout.staging(name)
        status, written = read_dated(staging / "status.json")
        ending, ended = read_ending(staging)
        if ended < max(written, self._since):
            ending = None
        # One that was queued again has left its last attempt's status behind.
        if queue is not None and idle.state == "queued" and queued.dated > max(written, ended):
            self._requeued[job_id] = queued.dated
            return idle
        if written and max(written, ended) <= self._requeued.get(job_id, 0.0):
            return idle  # it has left the queue, and its wrapper is not there yet
        current = bool(status) and written >= self._since
        if ending is None and not current:
            return idle
        self._begun.add(job_id)
        if status.get("warning"):
            warning = printable(f"{job_id}: {status['warning']}")
            self._warned.setdefault((str(status.get("host")),), warning)
        if ending is not None and (status.get("state") in ACTIVE or not current):
            return JobSnapshot(
                id=job_id, state="failed", message=ending.sentence, ending=ending, queue=queue
            )
        return self._observe_attempt(job_id, staging, status, written, queue, ending)

    def _finish(self, job_id: str, manifest: Mapping[str, Any]) -> JobSnapshot:
        """A job whose result is published, which stays so."""
        warnings = tuple((manifest.get("facts") or {}).get("warnings") or ())
        if job_id in self._begun:
            self._warn(job_id, warnings)
        earlier = manifest.get("earlier_attempts") or ()
        self._finished[job_id] = JobSnapshot(
            id=job_id,
            state="done",
            seconds=manifest.get("wall_s"),
            message="; ".join(str(attempt.get("because")) for attempt in earlier),
            warnings=warnings,
            health=tuple(finding.text for finding in findings([stage_facts(job_id, manifest)])),
        )
        return self._finished[job_id]

    def _observe_attempt(
        self,
        job_id: str,
        staging: Path,
        status: Mapping[str, Any],
        written: float,
        queue: Waiting | None,
        ending: SlurmEnding | None,
    ) -> JobSnapshot:
        """A job by what its wrapper, at `written`, and its program say in its staging directory."""
        state = status.get("state")
        message = str(status.get("message") or "")
        if state in ACTIVE and _is_gone(status):
            # On a full disk a wrapper dies of it, and cannot write down why.
            full = full_disk_hint("", self._layout.root) or self._full_disk_message()
            state = "failed" if full else "killed"
            message = full or "its wrapper was killed"
        began = self._began.setdefault(job_id, written)
        progress, dated = read_dated(staging / PROGRESS_FILE) if state == "running" else ({}, 0.0)
        if dated < self._since:
            progress = {}
        warnings = tuple(progress.get("warnings") or ())
        self._warn(job_id, warnings)
        return JobSnapshot(
            id=job_id,
            state=state if state in (*ACTIVE, "failed", "killed") else "waiting",
            message=message,
            seconds=max(0.0, self._now() - began) if state in ACTIVE else None,
            warnings=warnings,
            queue=queue,
            ending=ending,
            **self._measure(job_id, progress, dated, resumed=status.get("attempts") != 1),
        )

    def _full_disk_message(self) -> str:
        """By a wrapper of this run: there may be room again by now."""
        lines = [] if self.driver_log is None else last_lines(self.driver_log, 500).splitlines()
        matches = filter(None, map(_FULL_DISK.search, lines))
        return next((match[0] for match in matches), "")

    def _warn(self, job_id: str, warnings: Iterable[str]) -> None:
        for text in warnings:
            self._warned.setdefault((job_id, text), printable(f"{job_id}: warning: {text}"))

    def _now(self) -> float:
        """The time by the clock that dates the store's files."""
        return time.time() + self._ahead

    def _measure(
        self, job_id: str, progress: Mapping[str, Any], dated: float, resumed: bool
    ) -> dict[str, Any]:
        """Amounts and rate; the rate counts from the program's start, where it says how much there
        was then or is the job's first. Of another, from the first look: a resumed job starts with
        rows that it did not make in this run."""
        if not progress:
            return {}
        done, total, when = progress["done"], progress.get("total"), progress["time"]
        started, before = progress.get("started") or when, progress.get("before")
        if before is None:
            began = (done, when) if resumed else (0, started)
        else:
            began = (before, started)
        first_done, first_when = self._first.setdefault(job_id, began)
        rate: float | None = None
        if when > first_when and done > first_done:
            rate = (done - first_done) / (when - first_when)
        remaining = None
        if rate and total is not None and total > done:
            remaining = max(0.0, (total - done) / rate - (self._now() - dated))
        return {
            "done": done,
            "total": total,
            "unit": progress.get("unit") or "",
            "rate": rate,
            "remaining": remaining,
            "numbers": progress.get("numbers") or {},
        }


def _idle_state(queue: Waiting | None) -> State:
    pending = queue is not None and queue.state == "PENDING" and not queue.server
    return "queued" if pending else "waiting"


def clock_ahead(folder: Path) -> float:
    """Seconds by which the clock that dates files in a folder is ahead of this machine's."""
    return now_at(folder) - time.time()


def _is_gone(status: Mapping[str, Any]) -> bool:
    """Whether the wrapper is known to be dead; about one on another node nothing is known."""
    if status.get("host") != os.uname().nodename:
        return False
    return Path("/proc").exists() and not Path(f"/proc/{status.get('pid')}").exists()


_END_S = 15.0


class ServerWatch:
    """Tells what is new about the shared servers of a plan; `since` is when the run began. Files
    tell by their own dates what was before: clocks of nodes may differ."""

    def __init__(self, layout: StoreLayout, document: Document, since: float) -> None:
        self._copies = [
            (f"{server['id']}" + (f", copy {number}" if server["replicas"] > 1 else ""), copy)
            for server in document.get("servers") or []
            for number, copy in enumerate(ServerFolder(layout, server).copies(), start=1)
        ]
        self._since = since + (clock_ahead(layout.root) if since else 0.0)
        self._told: dict[str, object] = {}

    def news(self) -> Iterator[str]:
        """A line for each copy whose state has changed since the last look."""
        for name, copy in self._copies:
            state, dated = read_dated(copy.state_file)
            now = (state.get("state"), state.get("generation"))
            if state and dated >= self._since and self._told.get(name) != now:
                self._told[name] = now
                yield f"{name}: {_words(state)}"

    def failures(self) -> list[str]:
        """Why copies failed in this run, with the paths of their logs."""
        return [
            f"{name} failed: {state.get('message')}\n  log: {copy.path / 'host.log'}"
            for name, copy in self._copies
            for state, dated in [read_dated(copy.state_file)]
            if state.get("state") == "failed" and dated >= self._since
        ]


def release_servers(layout: StoreLayout, document: Document, driver: int) -> list[str]:
    """Give back what the ended Snakemake (its pid) held of shared servers, and wait until those
    that nobody else uses are gone; names of those that are not."""
    folders = [ServerFolder(layout, server) for server in document.get("servers") or []]
    ending: list[tuple[str, ServerFolder, CopyFolder]] = []
    for folder in folders:
        for lease in folder.leases.glob(f"run-{os.uname().nodename}-{driver}-*"):
            lease.unlink(missing_ok=True)
        if folder.path.is_dir() and end_unused(folder, layout):
            ending += [(folder.server["id"], folder, copy) for copy in folder.copies()]
    deadline = time.monotonic() + _END_S
    while True:
        left = [
            name
            for name, folder, copy in ending
            if copy.state().get("host") == os.uname().nodename
            and locked(layout.lock(folder.name_of(copy)))
        ]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def _words(state: Mapping[str, Any]) -> str:
    where = f" on {state['node']}" if state.get("node") else ""
    where += f", SLURM job {state['slurm']}" if state.get("slurm") else ""
    message = str(state.get("message") or "").split("\n")[0]
    return f"{state.get('state')}{where}" + (f" ({message})" if message else "")
