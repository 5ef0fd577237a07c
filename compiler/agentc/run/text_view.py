"""Jobs of a run as text: numbers and states in words, the cells of a sweep folded into one line,
and PlainView, the timestamped lines of a run whose output is no terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from agentc.plan.stage_names import FEWEST_CELLS, of_all_cells
from agentc.run.observe import JobSnapshot, State
from agentc.run.slurm_records import SUSPENDED, Waiting
from agentc.runtime.machine.process import STOPPED
from agentc.text import and_more, counted, duration

STATE_WORDS = {
    "waiting": "waiting",
    "queued": "queued",
    "software": "building its software stack",
    "leases": "starting servers",
    "running": "running",
    "checking": "checking the result",
    "done": "done",
    "failed": "failed",
    "killed": "killed",
}

_MINUTE_S = 60.0
FULL_DISK = "(ENOSPC; "
"""What every message of a full disk has, and no other."""


def amount(seen: JobSnapshot) -> str:
    """`40/100 rows`, or "" when nothing is known."""
    if seen.done is None:
        return ""
    if seen.total is None:
        return f"{seen.done:g} {seen.unit}".rstrip()
    return f"{seen.done:g}/{seen.total:g} {seen.unit}".rstrip()


def speed(seen: JobSnapshot) -> str:
    """`2.1 rows/s`; what the program itself reports is preferred to what was observed."""
    own = seen.numbers.get(f"{seen.unit}_per_s")
    rate = own if own is not None else seen.rate
    if not rate:
        return ""
    if rate >= 0.1:
        return f"{rate:.{1 if rate < 100 else 0}f} {seen.unit}/s"
    return f"{60 * rate:.1f} {seen.unit}/min"


def numbers(seen: JobSnapshot) -> str:
    """Losses, rewards, tokens a second: `loss 0.412, 350 tokens/s`."""
    parts = []
    for name, value in sorted(seen.numbers.items()):
        if not isinstance(value, (int, float)) or name == f"{seen.unit}_per_s":
            continue
        if name.endswith("_per_s"):
            parts.append(f"{value:.4g} {name[: -len('_per_s')]}/s")
        else:
            parts.append(f"{name} {value:.4g}")
    return ", ".join(parts)


def remaining(seen: JobSnapshot) -> str:
    """`about 3 min 20 s left`."""
    return f"about {duration(seen.remaining)} left" if seen.remaining is not None else ""


def sentence(seen: JobSnapshot) -> str:
    """All of it on one line; `details` has the rest."""
    words = STATE_WORDS[seen.state]
    if seen.state == "done":
        took = f"done in {duration(seen.seconds)}" if seen.seconds is not None else "done"
        return f"{took} (earlier attempts: {seen.message})" if seen.message else took
    if seen.stopped and seen.ending is not None:
        return f"stopped: {seen.ending.sentence}"
    if seen.stopped:
        return f"stopped{seen.message.removeprefix(STOPPED)}; `agentc run` continues"
    if seen.state in ("failed", "killed"):
        return f"{words}: {seen.message.splitlines()[0]}" if seen.message else words
    if seen.queue is not None and (seen.state in ("queued", "waiting") or _suspended(seen.queue)):
        return in_queue(seen.queue)
    if seen.state in ("software", "leases") and seen.message:
        return f"{words} ({seen.message})"
    parts = [amount(seen), speed(seen), numbers(seen), remaining(seen)]
    return ", ".join([words, *(part for part in parts if part)])


def details(seen: JobSnapshot) -> list[str]:
    """What a line has no room for: the rest of a message, how SLURM ended the job, and what to
    change."""
    lines: list[str] = []
    if seen.state in ("failed", "killed"):
        lines += seen.message.splitlines()[1:]
        if seen.ending is not None:
            if seen.ending.sentence not in (sentence(seen), seen.message) and not seen.stopped:
                lines.append(seen.ending.sentence)
            lines += [seen.ending.cause, seen.ending.remedy]
    elif seen.queue is not None:
        lines.append(seen.queue.remedy)
    return [line for line in lines if line]


def in_queue(job: Waiting) -> str:
    """`queued for 3 min 20 s (SLURM job 49: Resources)`; in the first minute without a time."""
    seconds = time.time() - job.since
    since = f" for {duration(seconds)}" if seconds >= _MINUTE_S else ""
    if job.state == SUSPENDED:
        words = f"suspended by SLURM{since} (job {job.number})"
    else:
        words = f"queued{since} (SLURM job {job.number}: {job.reason or 'no reason given'})"
    return f"waiting for {job.server}: {words}" if job.server else words


def _suspended(job: Waiting) -> bool:
    return job.state == SUSPENDED and not job.server


_NAMED = 2
"""Jobs at work whose amounts a line tells."""


@dataclass(frozen=True, slots=True)
class FoldedJobs:
    """Jobs of one stage in several cells; `id` is `sft@*`."""

    id: str
    jobs: tuple[JobSnapshot, ...]

    @property
    def state(self) -> State:
        """That of the whole: at work where one is, waiting where one waits, else done."""
        states = {seen.state for seen in self.jobs}
        if states == {"done"}:
            return "done"
        return "running" if any(seen.active for seen in self.jobs) else "waiting"

    def sentence(self, waiting: str = STATE_WORDS["waiting"]) -> str:
        """`3 of 9 done, 2 running (seed=3: 40/100 steps, about 29 s left), 4 waiting`."""
        states = Counter(seen.state for seen in self.jobs)
        took = sum(seen.seconds or 0.0 for seen in self.jobs if seen.state == "done")
        if self.state == "done":
            return f"{counted(len(self.jobs), 'job')} done in {duration(took)} together"
        parts = [f"{states.pop('done', 0)} of {len(self.jobs)} done"]
        later = states.pop("waiting", 0)
        for state, count in states.items():
            parts.append(f"{count} {STATE_WORDS[state]}{self._measured(state)}")
        return ", ".join([*parts, *([f"{later} {waiting}"] if later else [])])

    def _measured(self, state: State) -> str:
        """How far the jobs of a state are, by their cells."""
        said = []
        for seen in self.jobs:
            words = ", ".join(part for part in (amount(seen), remaining(seen)) if part)
            if seen.state == state and words:
                cell = seen.id.partition("@")[2].rpartition(":")[0] or seen.id.partition("@")[2]
                said.append(f"{cell}: {words}")
        return f" ({and_more(said[:_NAMED], len(said) - _NAMED)})" if said else ""


def fold_jobs(jobs: Iterable[JobSnapshot]) -> list[JobSnapshot | FoldedJobs]:
    """Each job, or the fold that it is in, at the place of the fold's first."""
    cells: dict[str, list[JobSnapshot]] = {}
    order: list[JobSnapshot] = list(jobs)
    for seen in order:
        if seen.state not in ("failed", "killed"):
            cells.setdefault(of_all_cells(seen.id), []).append(seen)
    found: list[JobSnapshot | FoldedJobs] = []
    placed: set[str] = set()
    for seen in order:
        name = of_all_cells(seen.id)
        alike: Sequence[JobSnapshot] = cells.get(name, ())
        if name == seen.id or len(alike) < FEWEST_CELLS or seen.state in ("failed", "killed"):
            found.append(seen)
        elif name not in placed:
            placed.add(name)
            found.append(FoldedJobs(name, tuple(alike)))
    return found


def stage_path(name: str) -> tuple[str, str]:
    """What is before the last dot of a stage's path, and the rest: a cell may have dots of its
    own."""
    path, at, cell = name.partition("@")
    group, _, last = path.rpartition(".")
    return group, last + at + cell


_EVERY_S = 15.0
_PASSING_S = 10.0
_IDLE = ("waiting", "queued")


class PlainView:
    """Writes lines to a stream. Use as a context manager, like the live view."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._states: dict[str, str] = {}
        self._told: dict[str, float] = {}
        self._last_passing = time.monotonic()

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.flush()

    def show(self, jobs: Sequence[JobSnapshot]) -> None:
        """Tell what changed since the last call."""
        now = time.monotonic()
        for seen in jobs:
            before = self._states.get(seen.id)
            if before is None and seen.state in (*_IDLE, "done"):
                self._states[seen.id] = seen.state
                continue
            if before in _IDLE and seen.state in _IDLE:
                continue  # of the queue there is a line for all (slurm_waiting.py)
            again = seen.active and now - self._told.get(seen.id, now) >= _EVERY_S
            if seen.state != before or again:
                self._states[seen.id] = seen.state
                self._told[seen.id] = now
                self.print_line(f"{seen.id}: {_line(seen)}")

    def print_line(self, text: str, *, passing: bool = False) -> None:
        """One line with the time. Of `passing` ones only one in ten seconds is written."""
        now = time.monotonic()
        if passing and now - self._last_passing < _PASSING_S:
            return
        if passing:
            self._last_passing = now
        self._stream.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        self._stream.flush()


def _line(seen: JobSnapshot) -> str:
    """A full disk ends many jobs: the run names once, at its end, which and what helps."""
    if FULL_DISK in seen.message and seen.state in ("failed", "killed"):
        return f"{STATE_WORDS[seen.state]}: its disk is full"
    return sentence(seen)
