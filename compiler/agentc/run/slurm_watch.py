"""What Snakemake's plugin for SLURM does not report of a run's jobs, or reports late, seen in the
queue itself: that one was cancelled, or has ended. Snakemake reads the ends from a file."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agentc.plan.work import Work, object_of
from agentc.run import slurm_endings, slurm_queue
from agentc.run.observe import JobSnapshot
from agentc.run.slurm_endings import Ending, ids_of
from agentc.run.slurm_queue import EndsFile, QueueState
from agentc.run.slurm_records import WaitingRecord
from agentc.run.slurm_waiting import Explain, WaitingNews
from agentc.runtime.store.file_system import refresh

POLL_S = 10.0
_RHYTHM = ((60.0, POLL_S), (600.0, 30.0), (3600.0, 60.0))
"""Until so long after something was submitted or ended, so long between two looks."""
_RARELY_S = 120.0
_SOON_S = 4.0
_SOON_LOOKS = 3
_SOON_JOBS = 20
"""A job that the store shows ended leaves the queue within seconds: a few looks follow each other
soon, where few jobs are there."""
UNREPORTED_STATES = {"CANCELLED": 15.0, "PREEMPTED": 30.0}
"""Ends that plugin 2.8.0 takes for a job that still runs (accounting says `CANCELLED by 0`), and
seconds after which SLURM will not bring the job back."""
FINAL = {"DEADLINE": 0.0, "FAILED": 0.0, "OUT_OF_MEMORY": 0.0, "TIMEOUT": 0.0}
FINAL.update({"BOOT_FAIL": 30.0, "NODE_FAIL": 30.0})
"""Ends that Snakemake hears of after so many seconds, in which SLURM may start the job again."""
UNREPORTED_S = 240.0
"""Other ends it tells after its next look, at most three minutes later, if accounting answers."""
FORGOTTEN_S = 30.0
"""A job that no look has shown, after which SLURM answers: where its controller was away since the
submission, or the job has no log yet, accounting has nothing to add. A controller that was killed
has lost it."""
DONE_S = 75.0
"""Where all jobs are gone and done for so long, Snakemake does not heed what it heard (another
version of its plugin); longer than it waits for their files, usually a minute."""
_ENDED = {*UNREPORTED_STATES, *FINAL, "COMPLETED"}
_OF_SLURM = _ENDED - {"COMPLETED", "FAILED"}
"""Ends that a job's own program has no words for."""

_RESOURCES = re.compile(r"^    resources: (.*)", re.MULTILINE)
_OTHER_CLUSTER = re.compile(r"clusters?[= ]|-M ")
"""`slurm_cluster=east`, or words for sbatch: `squeue` shows no such job."""

Verdict = Literal["wait", "failed", "again"]
Ask = Callable[[Collection[str]], Mapping[str, QueueState]]


def _no_words(unit: str) -> list[str]:
    return []


def pause_after(quiet: float) -> float:
    """Seconds until the next look, where nothing was submitted or ended for so long."""
    return next((pause for until, pause in _RHYTHM if quiet < until), _RARELY_S)


def _alive(states: Mapping[str, QueueState]) -> set[str]:
    return {number for number, job in states.items() if job.state not in _ENDED}


@dataclass(frozen=True, slots=True)
class _DriverLog:
    """What Snakemake's log says: the numbers of jobs that it heard the end of, the logs of jobs,
    and whether jobs may be in a cluster whose queue does not show here."""

    ended: frozenset[str]
    paths: Mapping[str, Path]
    other_cluster: bool

    @classmethod
    def read(cls, text: str, endings: Iterable[Ending]) -> _DriverLog:
        resources = _RESOURCES.findall(text)  # none where the profile bids Snakemake be quiet
        return cls(
            ended=frozenset(ending.number for ending in endings),
            paths=slurm_endings.logs(text),
            other_cluster=not resources or any(map(_OTHER_CLUSTER.search, resources)),
        )


@dataclass(slots=True)
class _Tally:
    """The jobs of one look: how many are at work, how many are done, how many are lost; the ends
    that Snakemake should hear of, and news for people."""

    now: float
    running: int = 0
    done: int = 0
    lost: int = 0
    ends: dict[str, str] = field(default_factory=dict)
    news: list[str] = field(default_factory=list)


class QueueWatch:
    """The jobs of one Snakemake, whose log begins at `start`. `ask` tells the states of a run's
    jobs by number, those that ended within the last minutes too; it may raise QueueError."""

    def __init__(
        self,
        work: Work,
        log: Path,
        start: int,
        ask: Ask,
        *,
        keep_going: bool,
        ends: EndsFile | None = None,
        record: WaitingRecord | None = None,
        explain: Explain = _no_words,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work, self._log, self._start, self._ask = work, log, start, ask
        self._keep_going, self._clock, self._ends = keep_going, clock, ends
        self._asker = ThreadPoolExecutor(max_workers=1)
        self._asked: Future[Mapping[str, QueueState]] | None = None
        self._stirred = clock()
        self._next = clock() + POLL_S
        self._soon = 0
        self._size = start
        self._units: dict[str, str] = {}
        self._states: Mapping[str, QueueState] = {}
        self._over: frozenset[str] = frozenset()
        self._away = False
        self._outlived: set[str] = set()
        self._seen: set[str] = set()
        self._gone: dict[str, float] = {}
        self._reported: set[str] = set()
        self._kept: set[str] = set()
        self._heard: dict[str, str] = {}
        self._held: set[str] = set()
        self._published: set[str] = set()
        self._settled: set[str] = set()
        self._news = WaitingNews(work, record, explain, clock)
        self._servers: dict[str, str] = {}
        self._objects = {str(job["id"]): object_of(job) for job in work.document["jobs"]}

    def notice(self, jobs: Iterable[JobSnapshot]) -> None:
        """What the store shows, which costs SLURM nothing: after an end there the queue is looked
        at soon."""
        over = frozenset(one.id for one in jobs if one.state in ("done", "failed", "killed"))
        if over - self._over:
            self._stirred = self._clock()
            self._soon = _SOON_LOOKS if len(self._open()) <= _SOON_JOBS else 0
            self._next = min(self._next, self._clock() + (_SOON_S if self._soon else POLL_S))
        self._over = over

    def check(self) -> tuple[Verdict, list[str]]:
        """Whether Snakemake waits in vain, and news for people. SLURM is asked beside the caller:
        while its controller is away that takes long."""
        if self._asked is None:
            self._notice_log()
            if self._clock() < self._next:
                return "wait", []
            self._units = slurm_endings.submitted(self._text())
            self._servers = self._news.servers()
            waiting = {number: self._units[number] for number in self._open()} | self._servers
            self._asked = self._asker.submit(self._inquire, waiting)
            return "wait", []
        if not self._asked.done():
            return "wait", []
        answer, self._asked = self._asked, None
        try:
            states = answer.result()
        except slurm_queue.QueueError as error:
            news = [] if self._away else [f"{error}; running jobs continue, and this run waits"]
            self._away = True
            self._schedule()
            return "wait", news
        news = ["SLURM answers again"] if self._away else []
        if self._away:
            self._outlived |= set(self._units)
        self._away = False
        if states != self._states:
            self._stirred = self._clock()
        if _alive(self._states) - _alive(states):
            self._soon = 0  # what the store showed has left the queue, too
        self._states = states
        self._schedule()
        verdict, more = self._judge(states)
        more += self._news.update(self._units | self._servers, states)
        return verdict, news + more

    def close(self) -> None:
        """Wait for no answer any more."""
        self._asker.shutdown(wait=False, cancel_futures=True)

    def _inquire(self, units: Mapping[str, str]) -> Mapping[str, QueueState]:
        states = self._ask(list(units)) if units else {}
        self._news.prepare(units, states)
        return states

    def _schedule(self) -> None:
        now = self._clock()
        self._next = now + (_SOON_S if self._soon else pause_after(now - self._stirred))
        self._soon = max(0, self._soon - 1)

    def _notice_log(self) -> None:
        """Snakemake writes where it submits, or heard of an end."""
        size = self._log.stat().st_size
        if size != self._size:
            self._size, self._stirred = size, self._clock()
            self._next = min(self._next, self._clock() + POLL_S)

    def _open(self) -> list[str]:
        """Numbers of jobs that there is something to learn of."""
        return [number for number in self._units if number not in self._settled]

    def _text(self) -> str:
        with self._log.open("rb") as file:
            file.seek(self._start)
            return file.read().decode("utf-8", "replace")

    def _judge(self, states: Mapping[str, QueueState]) -> tuple[Verdict, list[str]]:
        text = self._text()
        endings = slurm_endings.read_endings(text, self._work)
        fresh = [ending for ending in endings if ending.number not in self._kept]
        slurm_endings.keep_endings(fresh, self._work)
        self._kept |= {ending.number for ending in fresh}
        log = _DriverLog.read(text, endings)
        tally = _Tally(self._clock())
        for number, unit in self._units.items():
            self._judge_job(number, unit, states.get(number, QueueState("")), log, tally)
        self._pass_on(tally.ends)
        verdict, news = self._verdict(tally, slurm_endings.count_finished(text))
        return verdict, tally.news + news

    def _judge_job(
        self, number: str, unit: str, job: QueueState, log: _DriverLog, tally: _Tally
    ) -> None:
        """Count a job: it is at work as long as nothing shows that it has ended."""
        state = job.state
        if state:
            self._seen.add(number)
        if job.held and number not in self._held:
            self._held.add(number)
            tally.news.append(self._held_words(Ending(number, unit, state), job.reason))
        new = number not in self._seen
        if (new and log.other_cluster) or (state and state not in _ENDED):
            self._gone.pop(number, None)
            tally.running += 1
            return
        if number not in self._gone and state in _OF_SLURM:
            # Kept now: this run may be killed before it is sure of it.
            slurm_endings.keep_endings([Ending(number, unit, state)], self._work)
        since = tally.now - self._gone.setdefault(number, tally.now)
        if number in log.ended:
            tally.lost += number in self._reported
            self._settled.add(number)
        elif self._is_published(unit):
            tally.done += 1
            tally.ends[number] = "COMPLETED"
            if since >= UNREPORTED_S:
                self._settled.add(number)
        elif self._is_lost(number, state, since, log):
            unknown = slurm_endings.FORGOTTEN if new else "VANISHED"
            tally.news.append(self._report(Ending(number, unit, state or unknown)))
            tally.lost += 1
        else:
            tally.running += 1
            if since >= FINAL.get(state, UNREPORTED_S):
                tally.ends[number] = state

    def _is_lost(self, number: str, state: str, since: float, log: _DriverLog) -> bool:
        """Whether Snakemake will hear of no end of a job that is gone, and not done."""
        if since >= UNREPORTED_STATES.get(state, UNREPORTED_S):
            return True
        new = number not in self._seen
        return new and since >= FORGOTTEN_S and self._is_forgotten(number, log.paths.get(number))

    def _verdict(self, tally: _Tally, finished: int) -> tuple[Verdict, list[str]]:
        """Whether Snakemake, which has seen that many jobs finished, waits in vain."""
        # A shared server lives by the lease of Snakemake, and takes long to start again.
        servers = self._work.document.get("servers") or ()
        patience = UNREPORTED_S if any(one["scope"] == "shared" for one in servers) else DONE_S
        overdue = all(tally.now - since >= patience for since in self._gone.values())
        unnoticed = tally.done > finished
        ended = not tally.running
        if tally.lost and overdue and unnoticed and ended:
            # Once more would submit what is lost, too: that is for people to decide.
            return "failed", [
                "its other jobs are done and Snakemake was not notified; run again to continue"
            ]
        if tally.lost and (not self._keep_going or (ended and not unnoticed)):
            return "failed", []
        if overdue and unnoticed and ended and not tally.lost:
            return "again", [
                "its jobs are done and Snakemake was not notified; starting it once more"
            ]
        return "wait", []

    def _report(self, ending: Ending) -> str:
        """Write the end to Snakemake's log, in the plugin's words; returns it for people."""
        self._reported.add(ending.number)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"\nagentc: {slurm_endings.in_words_of_plugin(ending)}\n")
        return f"{ending.sentence(self._work)}; {ending.cause}"

    def _pass_on(self, ends: Mapping[str, str]) -> None:
        """Let Snakemake hear of ends, whatever accounting says, and whatever else is running."""
        fresh = {n: state for n, state in ends.items() if self._heard.get(n) != state}
        if fresh and self._ends is not None and self._ends.add(fresh):
            self._heard.update(fresh)

    def _held_words(self, job: Ending, reason: str) -> str:
        which = f"job {job.number} ({', '.join(ids_of(job, self._work))})"
        ways = f"`scontrol release {job.number}` lets it continue, `scancel {job.number}` ends it"
        return f"SLURM holds {which} back: {reason}; {ways}"

    def _is_forgotten(self, number: str, log: Path | None) -> bool:
        """Whether the controller has lost a job that no look has shown."""
        if number in self._outlived:
            return True
        if log is None:
            return False
        refresh(log.parent)
        return not log.exists()

    def _is_published(self, unit: str) -> bool:
        """Asked until it is so: thousands of jobs that are done cost nothing at each look."""
        if unit in self._published:
            return True
        wanted = [self._objects[one] for one in ids_of(Ending("", unit, ""), self._work)]
        for name in wanted:
            refresh(self._work.layout.object(name).parent)
        if not wanted or not all(map(self._work.layout.is_published, wanted)):
            return False
        self._published.add(unit)
        return True
