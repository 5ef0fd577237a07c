"""kill -9 of an online run under `agentc run`: which phase its job is at, by the files that it
writes, and a run that is hit there. Neighbours: kills.py (processes by what they do),
online_runs.py, `tests/end_to_end/test_online_kills.py`."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kills import by_kind
from online_runs import Calm, OnlineJob
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import drivers_of, processes_of

from agentc.program.job import read_json
from agentc.runtime.machine.process import started

ANYWHERE = "anywhere"
"""At a moment of the whole run, whatever it is at."""
STARTING, LOADING, SAVING, WRITING = "starting", "loading", "saving", "writing"
CHECKING, PUBLISHING, PUBLISHED = "checking", "publishing", "published"
SHORT = (SAVING, WRITING, CHECKING, PUBLISHING)
"""What takes hundredths of a second; of the rest it is left open when within it."""
EVERYTHING = "everything"
VICTIMS = ("program", "wrapper", "Snakemake", "agentc run", EVERYTHING)
_POLL_S = 0.002
_LATE_S = 0.1


@dataclass(frozen=True, slots=True)
class Before:
    """What there was before a run began: attempts at the job, bytes of its log, and processes of
    other runs on the store."""

    attempts: int
    log: int
    processes: frozenset[int]

    @classmethod
    def now(cls, job: OnlineJob) -> Before:
        log = job.staging / "logs" / "log.txt"
        found = {pid for pids in by_kind(job.store).values() for pid in pids}
        return cls(_attempts(job), log.stat().st_size if log.exists() else 0, frozenset(found))


def phase_of(job: OnlineJob, before: Before) -> str:
    """What the job is at in this run: one of the words above, or the phase of its loop, which its
    log has."""
    if (job.folder / "artifact.json").exists():
        return PUBLISHED
    if _attempts(job) <= before.attempts:
        return STARTING
    staging = job.staging
    if (staging / "publish").is_dir():
        return PUBLISHING
    if read_json(staging / "status.json").get("state") == "checking":
        return CHECKING
    with contextlib.suppress(OSError):
        begun = (staging / "job.json").stat().st_mtime
        if any(path.stat().st_mtime >= begun for path in (staging / "data").glob("*")):
            return WRITING
        states = [*(staging / "work").glob("state-*")]
        if len(states) > 1 or any(not (path / "complete").exists() for path in states):
            return SAVING
        with (staging / "logs" / "log.txt").open("rb") as log:
            log.seek(before.log)
            said = [line for line in log.read().split(b"\n") if line.startswith(b"iteration ")]
        if said:
            return said[-1].rsplit(b": ", 1)[1].decode()
    return LOADING


@dataclass(slots=True)
class Strikes:
    """Kills that were made, by victim and by what the run was at."""

    chance: random.Random
    made: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: int = 0

    def table(self) -> str:
        """Rows of what runs were at, columns of victims."""
        phases = sorted({phase for _, phase in self.made})
        lines = [["", *VICTIMS, "all"]]
        for phase in phases:
            row = [self.made[victim, phase] for victim in VICTIMS]
            lines.append([phase, *map(str, row), str(sum(row))])
        last = [sum(self.made[victim, phase] for phase in phases) for victim in VICTIMS]
        lines.append(["all", *map(str, last), str(sum(last))])
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def hit(
        self,
        process: subprocess.Popen[bytes],
        job: OnlineJob,
        before: Before,
        aim: str,
        calm: Calm,
    ) -> tuple[str, str] | None:
        """Kill something of the run when its job is at `aim`: its victim, and what the job was at.
        None where the run ends first; `calm` is an undisturbed one."""
        victim = self.chance.choice(VICTIMS[1:] if aim in (CHECKING, PUBLISHING) else VICTIMS)
        began, loaded = time.monotonic(), 0.0
        wait = self.chance.uniform(0.0, 0.7 * calm.whole_s)
        wait_loaded = self.chance.uniform(0.0, 0.2 * calm.phases_s)
        late = self.chance.uniform(0.0, _POLL_S if aim in SHORT else _LATE_S)
        ours: dict[str, list[int]] = {}
        while process.poll() is None:
            now = phase_of(job, before)
            if now not in (STARTING, LOADING) and not ours.get("program"):
                # Once: to look through all processes takes longer than a save.
                ours, loaded = _ours(job, before), loaded or time.monotonic()
            if aim == ANYWHERE:
                due = time.monotonic() - began >= wait
            elif aim in (WRITING, CHECKING, PUBLISHING):
                due = now == aim
            else:
                due = now == aim and time.monotonic() - loaded >= wait_loaded
            if due:
                time.sleep(late)
                found = ours or _ours(job, before)
                victims = (
                    [pid for pids in found.values() for pid in pids]
                    if victim == EVERYTHING
                    else found.get(victim, [])
                )
                if any(started(pid) for pid in victims):
                    self.chance.shuffle(victims)
                    now = phase_of(job, before)
                    for pid in victims:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    self.made[victim, now] += 1
                    _await_end(found.get("program", ()))
                    return victim, now
                if ours and now == PUBLISHED:
                    break
            time.sleep(_POLL_S)
        self.missed += 1
        return None


def assert_nothing_left(store: Path, runs: Sequence[subprocess.Popen[bytes]]) -> None:
    """All these runs end, and with them all that they started."""
    for process in runs:
        process.wait(timeout=PATIENCE_S)
    wait_for(lambda: not processes_of(store) and not drivers_of(store))


def _await_end(pids: Sequence[int]) -> None:
    wait_for(lambda: not any(map(started, pids)))


def _ours(job: OnlineJob, before: Before) -> dict[str, list[int]]:
    found = by_kind(job.store).items()
    return {kind: [pid for pid in pids if pid not in before.processes] for kind, pids in found}


def _attempts(job: OnlineJob) -> int:
    try:
        return (job.staging / "attempts.jsonl").read_bytes().count(b'"began"')
    except OSError:
        return 0
