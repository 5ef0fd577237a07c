"""What killed runs left: jobs in SLURM's queue, processes, staging folders, sessions without
members.

Jobs in the queue that make what the new run needs are taken over, or waited for; all others are
cancelled (docs/design/slurm.md says why). Another user's jobs are waited for and never cancelled.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentc.placement.profile import SLURM
from agentc.plan.work import Work, object_of
from agentc.run import slurm_queue
from agentc.run.active_runs import ActiveRun, active_runs
from agentc.run.slurm_endings import Ending, ids_of
from agentc.run.slurm_queue import QueuedJob, QueueError
from agentc.run.slurm_records import NOTHING, SUSPENDED, Waiting, WaitingJobs
from agentc.run.slurm_waiting import hint, numbers_text, why_never
from agentc.runtime.machine import process
from agentc.runtime.store.layout import MANIFEST, StoreLayout
from agentc.runtime.store.object_lock import ObjectLock
from agentc.store.presence import staged_names
from agentc.text import counted

_POLL_S = 2.0
_LONGEST_S = 30.0
"""Between two looks at jobs that are waited for: they may run for days."""
_CLEAR_S = 90.0
"""How long jobs may take to leave the queue: SLURM itself waits half a minute before it kills."""


def dead_runs(layout: StoreLayout, name: str) -> tuple[ActiveRun, ...]:
    """Runs of this experiment that were killed."""
    return tuple(run for run in active_runs(layout, name) if not run.is_alive())


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """Killed runs whose jobs are in the queue: those of `taken` become jobs of the new run, which
    starts only after those of `awaited`. `messages` say what happened."""

    taken: tuple[ActiveRun, ...]
    awaited: tuple[ActiveRun, ...]
    messages: tuple[str, ...]


def adopt_orphans(dead: Iterable[ActiveRun], work: Work, *, takes_over: bool = False) -> Orphans:
    """Cancel jobs of this user that the new run has no use for, and forget runs that have none in
    the queue. A run that `takes_over` jobs submits to the same queue. Another user's jobs are not
    taken over, nor are arrays, of which nobody knows which task makes what."""
    needed = _units(work)
    taken: list[ActiveRun] = []
    awaited: list[ActiveRun] = []
    numbers: list[str] = []
    cancelled = 0
    messages: list[str] = []
    for run in dead:
        try:
            jobs = slurm_queue.queued_jobs([run.token], run.uid) if run.queue == SLURM else ()
            unneeded = [job for job in jobs if not _may_be_of(job, needed)]
            if not run.is_mine:
                if len(unneeded) < len(jobs):
                    awaited.append(run)
                    messages.append(_of_another(run, [j for j in jobs if j not in unneeded]))
                continue
            if len(unneeded) == len(jobs):
                slurm_queue.clear([run.token] if jobs else [], _CLEAR_S)
                run.forget()
            else:
                slurm_queue.cancel(unneeded)
                left = [job for job in jobs if job not in unneeded]
                single = takes_over and all(job.is_certain for job in left)
                (taken if single else awaited).append(run)
                numbers += [job.id for job in left]
            cancelled += len(unneeded)
        except QueueError as error:
            messages.append(f"cannot determine what a killed run left in the queue: {error}")
    if cancelled:
        messages.append(
            f"cancelled {counted(cancelled, 'job')} that a killed run had left in the queue"
        )
    if numbers:
        messages.append(
            f"{counted(len(numbers), 'job')} of a run that was killed {_are(numbers)} in the queue"
            f" ({', '.join(numbers)}): waiting for what they make; `agentc cancel` ends them"
        )
    return Orphans(taken=tuple(taken), awaited=tuple(awaited), messages=tuple(messages))


def wait_for(runs: Sequence[ActiveRun], look: Callable[[], None]) -> None:
    """Wait until the jobs of these runs have left the queue; `look` is called all the while."""
    asked, pause = 0.0, _POLL_S
    while runs:
        if not asked or time.monotonic() - asked >= pause:
            pause = min(_LONGEST_S, 1.2 * pause) if asked else _POLL_S
            if not _queued(runs):
                break
            asked = time.monotonic()
        look()
        time.sleep(0.25)
    for run in runs:
        if run.is_mine:
            run.forget()


def refusal(run: ActiveRun) -> str:
    """Why this user cannot end a run."""
    return f"{run.name}: it is {run.user}'s: only they (or an administrator) can end its jobs"


def _are(jobs: Sequence[object]) -> str:
    return "is" if len(jobs) == 1 else "are"


def _of_another(run: ActiveRun, jobs: Sequence[QueuedJob]) -> str:
    numbers = ", ".join(job.id for job in jobs)
    return (
        f"{counted(len(jobs), 'job')} of a run of {run.user} that was killed {_are(jobs)} in the"
        f" queue ({numbers}): waiting for what they make; only {run.user} (or an administrator) can"
        " end them"
    )


def clear_queue(runs: Iterable[ActiveRun], *, patient: bool = True) -> str:
    """Cancel all jobs of these runs that this user may end; if `patient`, wait until they are gone.
    Returns what is amiss, in words, or ""."""
    by_user: dict[int, list[str]] = {}
    for run in runs:
        if run.queue == SLURM and run.may_be_ended:
            by_user.setdefault(run.uid, []).append(run.token)
    left: list[QueuedJob] = []
    try:
        for uid, tokens in by_user.items():
            left += slurm_queue.clear(tokens, _CLEAR_S, patient=patient, uid=uid)
    except QueueError as error:
        return f"cannot determine whether jobs are left in the queue ({error}); see `squeue --me`"
    if left:
        numbers = ", ".join(job.id for job in left)
        return f"SLURM jobs {numbers} were cancelled and have not ended after {_CLEAR_S:.0f} s"
    return ""


def _queued(runs: Sequence[ActiveRun]) -> bool:
    try:
        return any(slurm_queue.queued_jobs([run.token], run.uid) for run in runs)
    except QueueError:
        return True  # the controller may be back at the next look


def _may_be_of(job: QueuedJob, needed: Collection[str]) -> bool:
    """Whether it makes one of these objects, as far as anybody can tell: of an array that was cut
    off nothing is lost where it is let run."""
    kind, _, key = (job.unit or "").partition("/")
    if key == "*":
        return any(unit.startswith(f"{kind}/") for unit in needed)
    return job.unit in needed


def _units(work: Work) -> set[str]:
    """Objects that jobs of this run make: those of missing jobs, and of their sessions."""
    members = {m: s["key"] for s in work.document.get("sessions") or [] for m in s["members"]}
    found = {object_of(job) for job in work.missing}
    return found | {f"session/{members[job['id']]}" for job in work.missing if job["id"] in members}


def end_leftover_processes(layout: StoreLayout) -> int:
    """End marked processes of this store whose wrapper is gone (its lock is free); returns how
    many. Work of another run that is alive is left alone."""
    suffix = process.mark("", str(layout.root))
    found = {pid: mark for pid, mark in process.marks().items() if mark.endswith(suffix)}
    # A shared server is nobody's child, and its host ends it (docs/design/shared_servers.md).
    hosted = {mark for pid, mark in found.items() if _has_host(pid)}
    names = {mark.rsplit("@", 1)[0] for mark in set(found.values()) - hosted}
    ended = 0
    for name in sorted(names):
        with _claimed(layout, name) as ours:
            if ours:
                ended += process.end_marked(process.mark(name, str(layout.root)))
    return ended


def remove_stale_folders(layout: StoreLayout, names: list[str], sessions: list[str]) -> None:
    """Remove staging directories that outlived their publication, and session objects that name
    members which are not in the store any more (they would hide that work is missing). What
    somebody works on is left alone."""
    staged = staged_names(layout)
    for name in names:
        if name in staged and layout.is_published(name):
            with _claimed(layout, name) as ours:
                if ours:
                    shutil.rmtree(layout.staging(name), ignore_errors=True)
    for name in sessions:
        manifest = layout.manifest(name)
        if manifest.exists() and not _members_exist(layout, manifest):
            with _claimed(layout, name) as ours:
                if ours:
                    manifest.unlink(missing_ok=True)
                    shutil.rmtree(layout.object(name), ignore_errors=True)


def _has_host(pid: int) -> bool:
    try:
        words = Path(f"/proc/{process.parent_of(pid)}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"agentc.runtime.serve" in words


@contextmanager
def _claimed(layout: StoreLayout, name: str) -> Iterator[bool]:
    """Whether the claim on an object is held in this block: not when somebody else has it."""
    claim = ObjectLock(layout, name)
    try:
        yield claim.attempt() is None
    finally:
        claim.release()


def _members_exist(layout: StoreLayout, manifest: Path) -> bool:
    try:
        members = json.loads(manifest.read_text(encoding="utf-8"))["members"].values()
    except PermissionError:
        return True  # another user's, who has not shared it: not ours to remove
    except (OSError, ValueError, KeyError, AttributeError):
        return False
    return all((layout.object(member) / MANIFEST).exists() for member in members)


def left_in_queue(dead: Iterable[ActiveRun], work: Work) -> tuple[WaitingJobs, str]:
    """Which jobs of the plan wait there, and a line for people for each user whose runs were
    killed; "" where nothing is left."""
    by_user: dict[int, list[ActiveRun]] = {}
    for run in dead:
        if run.queue == SLURM:
            by_user.setdefault(run.uid, []).append(run)
    waiting: dict[str, Waiting] = {}
    lines: list[str] = []
    now = time.time()
    for uid, runs in by_user.items():
        whose = "" if runs[0].is_mine else f" of {runs[0].user}"
        try:
            jobs = slurm_queue.queued_jobs([run.token for run in runs], uid)
        except QueueError as error:
            lines.append(
                f"a run{whose} was killed; what it left in the queue is not known: {error}"
            )
            continue
        if jobs:
            waiting |= _waiting_of(jobs, work, now)
            lines.append(_left_line(jobs, runs[0], whose))
    return (WaitingJobs(waiting, now) if waiting else NOTHING), "\n  ".join(lines)


def _waiting_of(jobs: Iterable[QueuedJob], work: Work, now: float) -> dict[str, Waiting]:
    return {
        name: Waiting(
            number=job.id,
            state=job.state,
            reason="" if job.reason == "None" else job.reason,
            since=now,
            remedy=why_never(job.reason) or hint(job.reason),
        )
        for job in jobs
        if job.state in ("PENDING", SUSPENDED) and job.unit and job.is_certain
        for name in ids_of(Ending("", job.unit, ""), work)
    }


def _left_line(jobs: Sequence[QueuedJob], run: ActiveRun, whose: str) -> str:
    states = ", ".join(
        f"{n} {state}" for state, n in sorted(Counter(j.state for j in jobs).items())
    )
    verb = "is" if len(jobs) == 1 else "are"
    ends = (
        "`agentc cancel` ends them"
        if run.may_be_ended
        else f"only {run.user} (or an administrator) can end them"
    )
    return (
        f"a run{whose} was killed, and its {numbers_text(job.id for job in jobs)} {verb} in "
        f"SLURM's queue ({states}); `agentc run` waits for what it needs of them, {ends}"
    )
