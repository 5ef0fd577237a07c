"""What Snakemake's plugin for SLURM does not tell of a run's jobs, seen in the queue itself: that
one was cancelled, or has ended while accounting does not answer. Neighbours: drive.py (asks all the
while), slurm_endings.py (reads what is written to the log here), slurm_queue.py."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from agentc.plan.work import Work, object_of
from agentc.run import slurm_endings, slurm_queue
from agentc.run.slurm_endings import Ending, ids_of
from agentc.runtime.store.visible import refresh

LOOK_S = 10.0
NEVER_TOLD = {"CANCELLED": 15.0, "PREEMPTED": 30.0}
"""Ends that plugin 2.8.0 takes for a job that still runs (accounting says `CANCELLED by 0`), and
seconds after which SLURM will not bring the job back."""
UNTOLD_S = 240.0
"""Other ends it tells after its next look, at most three minutes later, if accounting answers."""
DONE_S = 75.0
"""Where all jobs are gone and done for so long, Snakemake is not told of it (accounting is away),
or will be only at its next look; longer than it waits for their files, usually a minute."""
_ENDED = {*NEVER_TOLD, "BOOT_FAIL", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"}
_ENDED |= {"OUT_OF_MEMORY", "TIMEOUT"}

_RESOURCES = re.compile(r"^    resources: (.*)", re.MULTILINE)
_OTHER_CLUSTER = re.compile(r"clusters?[= ]|-M ")
"""`slurm_cluster=east`, or words for sbatch: `squeue` shows no such job."""

Verdict = Literal["wait", "failed", "again"]


class QueueWatch:
    """The jobs of one Snakemake, whose log begins at `start`. `ask` tells the states of a run's
    jobs by number, those that ended within the last minutes too; it may raise QueueError."""

    def __init__(
        self,
        work: Work,
        log: Path,
        start: int,
        ask: Callable[[], Mapping[str, str]],
        *,
        keep_going: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work, self._log, self._start, self._ask = work, log, start, ask
        self._keep_going, self._clock = keep_going, clock
        self._asker = ThreadPoolExecutor(max_workers=1)
        self._asked: Future[Mapping[str, str]] | None = None
        self._next = clock() + LOOK_S
        self._away = False
        self._seen: set[str] = set()
        self._gone: dict[str, float] = {}
        self._told: set[str] = set()
        self._held: set[str] = set()
        self._published: set[str] = set()
        self._objects = {str(job["id"]): object_of(job) for job in work.document["jobs"]}

    def look(self) -> tuple[Verdict, list[str]]:
        """Whether Snakemake waits in vain, and news for people. SLURM is asked beside the caller:
        while its controller is away that takes long."""
        if self._asked is None:
            if self._clock() >= self._next:
                self._asked = self._asker.submit(self._ask)
            return "wait", []
        if not self._asked.done():
            return "wait", []
        answer, self._asked = self._asked, None
        self._next = self._clock() + LOOK_S
        try:
            states = answer.result()
        except slurm_queue.QueueError as error:
            news = [] if self._away else [f"{error}; jobs at work go on, and this run waits"]
            self._away = True
            return "wait", news
        news = ["SLURM answers again"] if self._away else []
        self._away = False
        verdict, more = self._judge(states)
        return verdict, news + more

    def close(self) -> None:
        """Wait for no answer any more."""
        self._asker.shutdown(wait=False, cancel_futures=True)

    def _judge(self, states: Mapping[str, str]) -> tuple[Verdict, list[str]]:
        with self._log.open("rb") as file:
            file.seek(self._start)
            text = file.read().decode("utf-8", "replace")
        units = slurm_endings.submitted(text)
        known = {ending.number for ending in slurm_endings.read_endings(text, self._work)}
        now, news = self._clock(), []
        done, at_work, lost = 0, 0, 0
        asked = _RESOURCES.findall(text)  # nothing where the profile bids Snakemake be quiet
        elsewhere = not asked or any(map(_OTHER_CLUSTER.search, asked))
        for number, unit in units.items():
            state = states.get(number, "")
            if state:
                self._seen.add(number)
            if state.startswith(slurm_queue.HELD) and number not in self._held:
                self._held.add(number)
                news.append(self._held_words(Ending(number, unit, state)))
            new = number not in self._seen
            if (new and elsewhere) or (state and state not in _ENDED):
                self._gone.pop(number, None)
                at_work += 1
                continue
            since = now - self._gone.setdefault(number, now)
            if number in known:
                lost += number in self._told
            elif self._is_published(unit):
                done += 1
            elif since >= NEVER_TOLD.get(state, UNTOLD_S):
                unknown = slurm_endings.FORGOTTEN if new else "VANISHED"
                news.append(self._tell(Ending(number, unit, state or unknown)))
                lost += 1
            else:
                at_work += 1
        # A shared server lives by the lease of Snakemake, and takes long to start again.
        shared = any(one["scope"] == "shared" for one in self._work.document.get("servers") or ())
        patience = UNTOLD_S if shared else DONE_S
        overdue = all(now - since >= patience for since in self._gone.values())
        unnoticed = done - slurm_endings.count_finished(text)
        if lost and overdue and unnoticed > 0 and not at_work:
            # Once more would submit what is lost, too: that is for people to decide.
            news.append("its other jobs are done and Snakemake is not told; run again to go on")
            return "failed", news
        if lost and (not self._keep_going or (not at_work and unnoticed <= 0)):
            return "failed", news
        if overdue and unnoticed > 0 and not at_work and not lost:
            return "again", ["its jobs are done and Snakemake is not told; starting it once more"]
        return "wait", news

    def _tell(self, ending: Ending) -> str:
        """Write the end to Snakemake's log, in the plugin's words; returns it for people."""
        self._told.add(ending.number)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"\nagentc: {slurm_endings.in_words_of_plugin(ending)}\n")
        return f"{ending.sentence(self._work)}; {ending.cause}"

    def _held_words(self, job: Ending) -> str:
        which = f"job {job.number} ({', '.join(ids_of(job, self._work))})"
        reason = job.status.removeprefix(slurm_queue.HELD).strip()
        ways = f"`scontrol release {job.number}` lets it go on, `scancel {job.number}` ends it"
        return f"SLURM holds {which} back: {reason}; {ways}"

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
