"""Observation of jobs at work, from the files they leave in the store (contracts.md, section 7)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agentc.plan.work import object_of
from agentc.runtime.layout import StoreLayout
from agentc.runtime.program import read_json
from agentc.store.presence import listed_names, staged_names

State = Literal[
    "waiting", "environment", "leases", "running", "checking", "done", "failed", "killed"
]
ACTIVE = ("environment", "leases", "running", "checking")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
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
    seconds: float | None = None

    @property
    def active(self) -> bool:
        """Whether somebody works on it."""
        return self.state in ACTIVE


class Observer:
    """Looks at the jobs of a run again and again; `since` is when the run began: what staging
    directories tell about times before is old news."""

    def __init__(
        self, layout: StoreLayout, jobs: Iterable[Mapping[str, Any]], since: float
    ) -> None:
        self._layout = layout
        self._jobs = tuple(jobs)
        self._since = since
        self._finished: dict[str, Seen] = {}
        self._first: dict[str, tuple[float, float]] = {}
        self._began: dict[str, float] = {}
        self._failures: dict[str, Seen] = {}

    def look(self) -> tuple[Seen, ...]:
        """Every job, in the plan's order. One listing tells of thousands which to look at."""
        open_ones = [job for job in self._jobs if str(job["id"]) not in self._finished]
        there = listed_names(self._layout, (str(job["kind"]) for job in open_ones))
        there |= staged_names(self._layout) if open_ones else set()
        seen = tuple(self._look_at(job, there) for job in self._jobs)
        for one in seen:
            if one.state in ("failed", "killed"):
                self._failures[one.id] = one
            elif one.state == "done":
                self._failures.pop(one.id, None)
        return seen

    def failures(self) -> tuple[Seen, ...]:
        """Jobs that were seen to fail, and not to be done since: another run may be trying one of
        them again by now."""
        return tuple(self._failures.values())

    def _look_at(self, job: Mapping[str, Any], there: set[str]) -> Seen:
        name, job_id = object_of(job), str(job["id"])
        known = self._finished.get(job_id)
        if known is not None:
            return known
        if name not in there:
            return Seen(id=job_id, state="waiting")
        if self._layout.is_published(name):
            manifest = read_json(self._layout.manifest(name))
            seen = Seen(
                id=job_id,
                state="done",
                seconds=manifest.get("wall_s"),
                message="; ".join(
                    str(attempt.get("because"))
                    for attempt in manifest.get("earlier_attempts") or ()
                ),
            )
            self._finished[job_id] = seen
            return seen
        staging = self._layout.staging(name)
        status = read_json(staging / "status.json")
        told = status.get("time") or 0.0
        if not status or (self._since and told < self._since):
            return Seen(id=job_id, state="waiting")
        state = status.get("state")
        message = str(status.get("message") or "")
        if state in ACTIVE and _is_gone(status):
            state, message = "killed", "its wrapper was killed"
        began = self._began.setdefault(job_id, told)
        progress = read_json(staging / "progress.json") if state == "running" else {}
        if progress and progress["time"] < self._since:
            progress = {}
        return Seen(
            id=job_id,
            state=state if state in (*ACTIVE, "failed", "killed") else "waiting",
            message=message,
            seconds=max(0.0, time.time() - began) if state in ACTIVE else None,
            **self._measure(job_id, progress, resumed=status.get("attempts") != 1),
        )

    def _measure(self, job_id: str, progress: Mapping[str, Any], resumed: bool) -> dict[str, Any]:
        """Amounts and rate; the rate counts from the first look, since a resumed job starts with
        rows that it did not make in this run. At the first look at others, from their start."""
        if not progress:
            return {}
        done, total, when = progress["done"], progress.get("total"), progress["time"]
        began = (done, when) if resumed else (0, progress.get("started") or when)
        first_done, first_when = self._first.setdefault(job_id, began)
        rate: float | None = None
        if when > first_when and done > first_done:
            rate = (done - first_done) / (when - first_when)
        remaining = None
        if rate and total is not None and total > done:
            remaining = max(0.0, (total - done) / rate - (time.time() - when))
        return {
            "done": done,
            "total": total,
            "unit": progress.get("unit") or "",
            "rate": rate,
            "remaining": remaining,
            "numbers": progress.get("numbers") or {},
        }


def _is_gone(status: Mapping[str, Any]) -> bool:
    """Whether the wrapper is known to be dead; about one on another node nothing is known."""
    if status.get("host") != os.uname().nodename:
        return False
    return Path("/proc").exists() and not Path(f"/proc/{status.get('pid')}").exists()
