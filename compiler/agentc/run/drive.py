"""Drives Snakemake through a plan, from one process of it (snakemake_process.py) to the next: shows
what happens, stops it on a signal, and submits again what the cluster cut off."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from agentc.exit_codes import EXIT_DONE, EXIT_FAILED
from agentc.placement.profile import SLURM
from agentc.plan.work import Work
from agentc.run import slurm_queue
from agentc.run.observe import JobSnapshot, Observer, ServerWatch, release_servers
from agentc.run.slurm_endings import (
    Resubmissions,
    SubmissionRefusal,
    keep_endings,
    may_be_remembered,
    read_endings,
    read_refusals,
    submitted,
)
from agentc.run.slurm_queue import EndsFile, QueuedJob
from agentc.run.slurm_records import WaitingRecord
from agentc.run.slurm_waiting import Explain
from agentc.run.slurm_watch import QueueWatch, Verdict
from agentc.run.snakemake_process import Driver, DriverOptions, at_once, driver_argv, scratch_folder
from agentc.runtime.machine.process import STOPPING
from agentc.runtime.store.file_system import await_published, visibility_timeout
from agentc.text import counted

DRIVER_LOG = "snakemake.log"
OWN_LOG = "snakemake-{token}.log"
"""Of a run beside which another is at work on the same plan, in the same folder."""
POLL_S = 0.25
_QUEUE_S = 5.0
_LONGEST_S = 30.0
"""Between two looks at jobs that are let finish: they may run for days."""
_PAUSE_S = 5.0
_LONGEST_PAUSE_S = 300.0
_REFUSALS = 20
"""So often in a row SLURM may answer and take no job: a quarter of an hour."""


class RunView(Protocol):
    """What a run is shown on."""

    def show(self, jobs: Sequence[JobSnapshot]) -> None: ...

    def print_line(self, text: str, *, passing: bool = False) -> None: ...


@dataclass(frozen=True, slots=True)
class QueueWords:
    """Where a run writes down which jobs wait in SLURM's queue, and who knows why."""

    record: WaitingRecord | None = None
    explain: Explain = lambda unit: ()


def drive(
    work: Work,
    directory: Path,
    options: DriverOptions,
    observer: Observer,
    servers: ServerWatch,
    view: RunView,
    log: Path | None = None,
    news: Callable[[], Sequence[str]] = tuple,
    queue: QueueWords = QueueWords(),
) -> int:
    """Run Snakemake until the plan is done, or something fails by its own fault; returns the exit
    code. Jobs that the cluster ended are submitted again, within bounds (slurm_endings.py). `news`
    has lines of others to show."""
    log = log or directory / DRIVER_LOG
    log.unlink(missing_ok=True)
    resubmissions = Resubmissions(work)
    submission = _Submission(options, observer, view)
    while True:
        read = log.stat().st_size if log.exists() else 0
        code = _drive_once(
            work, directory, log, submission.options, observer, servers, view, news, queue
        )
        if code is None:
            continue
        if code == EXIT_DONE or not _is_queued(options):
            return code
        with log.open("rb") as file:
            file.seek(read)
            text = file.read().decode("utf-8", "replace")
        endings, refusals = read_endings(text, work), read_refusals(text)
        keep_endings(endings, work)
        if not (endings or refusals) or not all(ending.again for ending in endings):
            return code
        if submission.is_final(text, refusals):
            return code
        decisions = [resubmissions.decide(ending) for ending in endings]
        for _, message in decisions:
            view.print_line(message)
        if not all(again for again, _ in decisions):
            return code
        if refusals and not submission.resume(refusals, submitted(text)):
            return code


@dataclass(slots=True)
class _Submission:
    """What SLURM refused of a run so far, and the options of the next Snakemake: `refusals` and
    `refusals_of_limits` count those in a row since it last took a job."""

    options: DriverOptions
    observer: Observer
    view: RunView
    refusals: int = 0
    refusals_of_limits: int = 0
    restarted: bool = False
    """Once, after a refusal that Snakemake may owe to a node that it remembers."""

    def is_final(self, text: str, refusals: Sequence[SubmissionRefusal]) -> bool:
        """Whether SLURM would refuse the same again."""
        strict = _strict(refusals)
        return bool(strict) and (self.restarted or not may_be_remembered(text, strict))

    def resume(self, refusals: Sequence[SubmissionRefusal], taken: Collection[str]) -> bool:
        """Wait until SLURM may take jobs again; whether another Snakemake is to submit them.
        `taken` are the jobs that SLURM took from the last one."""
        strict = _strict(refusals)
        if strict:
            self.restarted = True
            self.view.print_line(
                f"SLURM refused a submission ({strict[0].message}); a failed node that Snakemake "
                "excludes may be the cause: starting it once more"
            )
            return True
        limits = [refusal.full for refusal in refusals if refusal.full]
        if limits:
            self._await_place(limits[0], taken)
            return True
        self.refusals = 1 if taken else self.refusals + 1
        if self.refusals > _REFUSALS:
            return False
        self.view.print_line(
            f"SLURM takes no jobs ({refusals[0].message}): waiting for it; Ctrl-C ends this"
        )
        pause = min(60.0, _PAUSE_S * self.refusals)
        _await_slurm(self.options, taken, self.observer, self.view, pause)
        return True

    def _await_place(self, limit: str, taken: Collection[str]) -> None:
        """After a limit of SLURM's was reached: fewer jobs at a time."""
        self.refusals_of_limits = 1 if taken else self.refusals_of_limits + 1
        self.options = replace(self.options, at_most=_fewer(self.options, len(taken)))
        self.view.print_line(
            f"SLURM takes no more of your jobs now ({limit}): waiting for a place, "
            f"and then submitting {self.options.at_most} at a time; Ctrl-C ends this"
        )
        pause = min(_LONGEST_PAUSE_S, _PAUSE_S * 2 ** min(self.refusals_of_limits, 6))
        _await_slurm(self.options, taken, self.observer, self.view, pause)


def _strict(refusals: Sequence[SubmissionRefusal]) -> list[SubmissionRefusal]:
    """Those that waiting does not change."""
    return [refusal for refusal in refusals if not refusal.passing]


def _drive_once(
    work: Work,
    directory: Path,
    log: Path,
    options: DriverOptions,
    observer: Observer,
    servers: ServerWatch,
    view: RunView,
    news: Callable[[], Sequence[str]],
    queue: QueueWords,
) -> int | None:
    """Exit code of one Snakemake; None where another one has to go on."""
    ends = _ends_file(log, options)
    if ends is not None:
        options = replace(options, ends=ends.path)
    taken = _to_take_over(options, observer, view)
    if taken:
        path = log.with_suffix(".taken.json")
        slurm_queue.write_taken_over(path, taken)
        options = replace(options, taken_over=path)
    options = _within_limit(work, options, view)
    argv = driver_argv(directory, work.layout, work.manifests(), options)
    start = log.stat().st_size if log.exists() else 0
    own = None if options.token is None else scratch_folder(directory, options.token)
    driver = Driver(argv, directory, log, queued=_is_queued(options), scratch_folder=own)
    watch = _queue_watch(work, log, start, options, ends, queue, [job.name for job in taken])
    verdict: Verdict = "wait"
    try:
        while driver.status() is None and verdict == "wait":
            began = time.monotonic()
            seen = observer.observe()
            view.show(seen)
            if watch is not None:
                watch.notice(seen)
                verdict, message = watch.check()
                for line in message:
                    view.print_line(line)
            for line in (*servers.news(), *observer.warnings(), *news()):
                view.print_line(line)
            # A look at ten thousand jobs takes a while; nine tenths of the time is for the jobs.
            time.sleep(max(POLL_S, 9 * (time.monotonic() - began)))
        if verdict != "wait":
            # The leases of shared servers last as long as Snakemake's process, and the other jobs
            # ask those servers to their end.
            driver.freeze()
            _await_running_jobs(options, observer, view)
            driver.abandon()
    except BaseException:
        view.print_line("stopping the running jobs")
        with ignore_signals():
            driver.stop()
            _release(work, driver, view)
        raise
    finally:
        if watch is not None:
            watch.close()
    _release(work, driver, view)
    view.show(observer.observe())
    if verdict == "again":
        return None
    # What another node published a moment ago may not show here yet.
    delay = visibility_timeout(work.layout) if driver.status() == 0 else 0.0
    complete = all(await_published(work.layout, name, delay) for name in work.wanted)
    return EXIT_DONE if driver.status() == 0 and complete else EXIT_FAILED


def _to_take_over(
    options: DriverOptions, observer: Observer, view: RunView
) -> tuple[QueuedJob, ...]:
    """Jobs of killed runs that are in the queue. Nothing is submitted before SLURM says which: it
    would be computed twice."""
    reported = False
    while options.killed:
        try:
            jobs = slurm_queue.queued_jobs(options.killed)
        except slurm_queue.QueueError as error:
            if not reported:
                view.print_line(f"{error}; waiting for SLURM to say which jobs a killed run left")
                reported = True
            _pass_time(_QUEUE_S, observer, view)
            continue
        return tuple(job for job in jobs if job.is_certain)
    return ()


def _within_limit(work: Work, options: DriverOptions, view: RunView) -> DriverOptions:
    """The options with no more jobs at a time than a limit of SLURM's leaves to the run now: less
    those that the user has there already, and its own shared servers."""
    limit = options.limit
    if limit is None or options.token is None:
        return options
    try:
        others = slurm_queue.count_towards(limit, options.tokens)
    except slurm_queue.QueueError:
        others = 0
    shared = sum(server["scope"] == "shared" for server in work.document.get("servers") or ())
    places = max(1, limit.count - others - shared)
    wanted = at_once(options.profile, options.jobs) or places
    if places < min(wanted, len(work.missing)):
        there = f", {others} of them are there" if others else ""
        view.print_line(
            f"{limit.owner} takes {counted(limit.count, 'job')} at a time{there}: "
            f"submitting {places} at a time"
        )
    return replace(options, at_most=min(places, options.at_most or places))


def _fewer(options: DriverOptions, taken: int) -> int:
    """How many jobs to submit at a time, after a limit refused one: as many as it took, or half of
    those where it took none (of an array it takes all or nothing)."""
    before = options.at_most or at_once(options.profile, options.jobs) or 2
    return max(1, taken if taken else before // 2)


def _ends_file(log: Path, options: DriverOptions) -> EndsFile | None:
    """Of runs whose jobs are in SLURM's queue; each Snakemake has one of its own, for a controller
    that was killed may give a number twice."""
    token, profile = options.token, options.profile
    if token is None or profile is None or profile.executor != SLURM:
        return None
    path = log.with_suffix(".ends.json")
    path.unlink(missing_ok=True)
    return EndsFile(path)


def _queue_watch(
    work: Work,
    log: Path,
    start: int,
    options: DriverOptions,
    ends: EndsFile | None = None,
    queue: QueueWords = QueueWords(),
    names: Sequence[str] = (),
) -> QueueWatch | None:
    """Of runs whose jobs are in SLURM's queue; `names` are those of jobs that were taken over."""
    token, profile = options.token, options.profile
    if token is None or profile is None or profile.executor != SLURM:
        return None
    ask = partial(slurm_queue.states, token, **({"names": names} if names else {}))
    keep_going = options.keep_going or profile.settings.get("keep-going") is True
    return QueueWatch(
        work,
        log,
        start,
        ask,
        keep_going=keep_going,
        ends=ends,
        record=queue.record,
        explain=queue.explain,
    )


def _await_running_jobs(options: DriverOptions, observer: Observer, view: RunView) -> None:
    """As Snakemake does after a failure: jobs in the queue are let finish."""
    reported, pause = False, _QUEUE_S
    while True:
        with suppress(slurm_queue.QueueError):
            left = slurm_queue.queued_jobs(options.tokens)
            if not left:
                return
            if not reported:
                view.print_line(f"waiting for {counted(len(left), 'other job')} in the queue")
                reported = True
        _pass_time(pause, observer, view)
        pause = min(_LONGEST_S, 1.2 * pause)


def _await_slurm(
    options: DriverOptions, known: Collection[str], observer: Observer, view: RunView, pause: float
) -> None:
    """Until SLURM answers and has none of the run's jobs. It may have taken one and lost its
    answer: Snakemake, which has no number of that, would submit it a second time, so it is
    cancelled. Those that are `known` by number are let finish."""
    tokens = () if options.token is None else (options.token,)
    reported = False
    _pass_time(pause, observer, view)
    while (left := _take_back(tokens, known, view)) != 0:
        if left and not reported:
            view.print_line(f"waiting for {counted(left, 'job')} in the queue")
            reported = True
        _pass_time(_QUEUE_S, observer, view)
    view.print_line("SLURM answers: continuing")


def _take_back(tokens: Sequence[str], known: Collection[str], view: RunView) -> int | None:
    """Cancel what SLURM has of these runs and nobody knows of. How many of their jobs are in the
    queue yet; None where SLURM does not answer."""
    if not slurm_queue.answers():
        return None
    with suppress(slurm_queue.QueueError):
        left = slurm_queue.queued_jobs(tokens)
        lost = [job for job in left if job.id not in known and job.state != "COMPLETING"]
        if lost:
            numbers = ", ".join(job.id for job in lost)
            view.print_line(
                f"SLURM took job {numbers} and did not say so: cancelled, submitted again"
            )
            slurm_queue.cancel(lost)
        return len(left)
    return None


def _pass_time(seconds: float, observer: Observer, view: RunView) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        view.show(observer.observe())
        time.sleep(POLL_S)


def _release(work: Work, driver: Driver, view: RunView) -> None:
    for name in release_servers(work.layout, work.document, driver.pid):
        view.print_line(f"{name} is still ending; it gives up when its lease has run out")


def _is_queued(options: DriverOptions) -> bool:
    return options.profile is not None and options.profile.queued


@contextmanager
def ignore_signals() -> Iterator[None]:
    """Ignore further impatient signals while jobs are being stopped; KILL still works."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
