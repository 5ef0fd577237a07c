"""SLURM's queue as far as runs of agentc are concerned: which jobs belong to a run, how they leave,
and the file by which a run reports to its Snakemake the ends that it saw there. Snakemake's
plugin submits the jobs; here they are only looked at and cancelled."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PREFIX = "agentc-"
"""Names of jobs begin with this and the token of their run (active_runs.py)."""

SERVER = "server-"
"""What follows it in the name of a shared server's job."""
_UNKNOWN = "Invalid job id specified"
_SQUEUE = ("squeue", "--noheader", "--array")
"""Each task of an array by itself: those that wait would share a line."""
_FEW = 200
"""Numbers that one command names."""
_COMMENT = re.compile(r"rule_([a-z_]+)_wildcards_([0-9a-f]{32})")
_TIMEOUT_S = 60.0
_PAUSES_S = (0.0, 1.0, 5.0)
"""Before each attempt: a busy controller may not answer at once."""
_LONGEST_S = 5.0
"""Between two looks at jobs that were cancelled."""


class QueueError(Exception):
    """SLURM does not answer."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """SLURM's words for the state of a job, and for why it waits."""

    state: str
    reason: str = ""

    @property
    def held(self) -> bool:
        """Whether it waits for a person, not for a node."""
        return self.state == "PENDING" and "held" in self.reason.lower()


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that waits, runs or is being ended. `unit` is the object (of a job, or of a session)
    that it makes, as far as its comment tells: `<kind>/*` for a task of an array."""

    id: str
    state: str
    reason: str
    unit: str | None
    name: str = ""

    @property
    def is_certain(self) -> bool:
        """Whether its object is certain."""
        return self.unit is not None and not self.unit.endswith("/*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitLimit:
    """At most `count` jobs of the user (with `shared`, of all users) in the queue. It counts those
    of the quality of service `qos`, or those of `account`, which `owner` says for people."""

    count: int
    owner: str
    qos: str | None = None
    account: str | None = None
    shared: bool = False


def count_towards(limit: SubmitLimit, tokens: Collection[str]) -> int:
    """Jobs in the queue that a limit counts, besides those of these runs. Raises QueueError."""
    whose = () if limit.shared else ("--me",)
    found = 0
    for line in _ask(*_SQUEUE, *whose, "--format=%q|%a|%j", once=True).splitlines():
        qos, account, name = [*line.split("|", 2), "", ""][:3]
        counts = limit.qos in (None, qos) and limit.account in (None, account)
        found += counts and not any(PREFIX + token in name for token in tokens)
    return found


def queued_jobs(tokens: Iterable[str], uid: int | None = None) -> tuple[QueuedJob, ...]:
    """Jobs of these runs that are in the queue, all of which the user of that number has started
    (None: this one). Raises QueueError. Of another user none may be shown: that is no proof that
    there are none.

    An `sbatch` outlives the Snakemake that was killed and may be about to add one more: those on
    this machine are waited for.
    """
    wanted = tuple(PREFIX + token for token in tokens)
    if not wanted:
        return ()
    _wait_for_submissions(wanted)
    found = []
    for line in _ask(*_SQUEUE, _whose(uid), "--format=%i|%j|%T|%r|%k").splitlines():
        number, name, state, reason, comment = (line.split("|", 4) + [""] * 5)[:5]
        if not any(prefix in name for prefix in wanted):
            continue
        made = _COMMENT.search(comment)
        # The comment of an array is that of its first task.
        key = "*" if "_" in number else made.group(2) if made else ""
        unit = f"{made.group(1)}/{key}" if made else None
        found.append(QueuedJob(number, state, reason, unit, name))
    return tuple(found)


def states(
    token: str, numbers: Collection[str] = (), *, names: Collection[str] = ()
) -> dict[str, QueueState]:
    """States of a run's jobs by number, also of those that ended within the last minutes, of jobs
    with these `names`, and of shared servers among `numbers`. If there are few numbers, the query
    is for these only. It is sent once: the caller repeats it. Raises QueueError."""
    whole = sorted({number.partition("_")[0] for number in numbers})
    which = ["--jobs=" + ",".join(whole)] if 0 < len(whole) <= _FEW else [_whose(None)]
    try:
        lines = _ask(*_SQUEUE, *which, "--states=all", "--format=%i|%T|%r|%j", once=True)
    except QueueError as error:
        if _UNKNOWN not in str(error):
            raise
        lines = ""  # of one number, which SLURM has forgotten
    rows = [line.split("|", 3) for line in lines.splitlines()]
    return {
        number: QueueState(state, "" if reason == "None" else reason)
        for number, state, reason, name in (row for row in rows if len(row) == 4)
        if PREFIX + token in name
        or name in names
        or (number in numbers and PREFIX + SERVER in name)
    }


def answers() -> bool:
    """Whether SLURM's controller does."""
    try:
        _ask("squeue", "--me", "--noheader", once=True)
    except QueueError:
        return False
    return True


def cancel(jobs: Iterable[QueuedJob]) -> None:
    """Ask SLURM to end these jobs; those that are gone already are no fault. Raises QueueError."""
    numbers = [job.id for job in jobs]
    for at in range(0, len(numbers), 100):
        _ask("scancel", "--quiet", *numbers[at : at + 100])


def clear(
    tokens: Iterable[str], timeout: float, *, patient: bool = True, uid: int | None = None
) -> tuple[QueuedJob, ...]:
    """Cancel the jobs of these runs (of that user, None: of this one) and, if `patient`, wait until
    they have left; returns those that stay for longer than that. Raises QueueError."""
    known = tuple(tokens)
    deadline = time.monotonic() + timeout
    pause = 0.5
    while left := queued_jobs(known, uid):
        ending = [job for job in left if job.state != "COMPLETING"]
        cancel(ending)
        if not ending and not patient:
            break
        if time.monotonic() > deadline:
            return left
        time.sleep(pause)
        pause = min(_LONGEST_S, 1.5 * pause)
    return ()


def _whose(uid: int | None) -> str:
    return "--me" if uid in (None, os.geteuid()) else f"--user={uid}"


def _wait_for_submissions(names: tuple[str, ...]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while any(map(_is_submitted_now, names)) and time.monotonic() < deadline:
        time.sleep(0.1)


def _is_submitted_now(name: str) -> bool:
    wanted = name.encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes()
            if wanted in line and b"sbatch" in line:
                return True
    return False


def _ask(*words: str, once: bool = False) -> str:
    why = ""
    for pause in _PAUSES_S[:1] if once else _PAUSES_S:
        time.sleep(pause)
        try:
            # Names of jobs are anybody's bytes.
            done = subprocess.run(
                words,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                timeout=_TIMEOUT_S,
            )
        except FileNotFoundError:
            raise QueueError(f"there is no `{words[0]}` on this machine") from None
        except subprocess.TimeoutExpired:
            why = f"no answer in {_TIMEOUT_S:.0f} s"
            continue
        except OSError as error:  # a login node that has no process or memory to spare now
            why = f"it cannot be started: {error.strerror or error}"
            continue
        if done.returncode == 0:
            return done.stdout
        why = done.stderr.strip() or f"exit status {done.returncode}"
    raise QueueError(f"{words[0]}: {why}")


ENDS = "--slurm-ends"
"""Argument of slurm_plugin.py that names the file."""
TAKEN = "--slurm-taken-over"
"""Argument of slurm_plugin.py that names the file of `write_taken_over`."""


def write_taken_over(path: Path, jobs: Iterable[QueuedJob]) -> None:
    """Write which jobs of killed runs Snakemake takes over. Raises OSError."""
    found = {job.unit: [job.id, job.name] for job in jobs if job.is_certain}
    path.write_text(json.dumps(found, sort_keys=True), encoding="utf-8")


def read_taken_over(path: Path) -> dict[str, tuple[str, str]]:
    """Numbers and names of these jobs by what they make."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return {unit: (number, name) for unit, (number, name) in found.items()}


class EndsFile:
    """States of ended jobs by number, written by the run and read by its Snakemake."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, str] = {}
        self._stamp: tuple[int, int] | None = None

    def add(self, ends: Mapping[str, str]) -> bool:
        """Write these ends, with those that were written before; False where the disk takes no
        more. Snakemake's own look is a little later then."""
        self._known = {**self._known, **ends}
        try:
            self._write()
        except OSError:
            return False
        return True

    def _write(self) -> None:
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        draft.write_text(json.dumps(self._known, sort_keys=True), encoding="utf-8")
        draft.replace(self.path)

    def read(self) -> dict[str, str]:
        """What is there now."""
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp != self._stamp:
                self._known = dict(json.loads(self.path.read_text(encoding="utf-8")))
                self._stamp = stamp
        except (OSError, ValueError):
            return {}
        return self._known
