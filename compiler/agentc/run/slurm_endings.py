"""How SLURM ended jobs of a run, read from the log of Snakemake's plugin: causes and remedies for
people, and which jobs are submitted again, as long as they get further and as often as
`placement: {retries: ...}` allows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentc.placement.precedence import retries_of
from agentc.plan.work import Work, object_of
from agentc.program.artifact_files import PROGRESS_FILE
from agentc.program.job import read_json
from agentc.run.slurm_records import SlurmEnding, write_ending
from agentc.runtime.machine.slurm_nodes import is_away
from agentc.runtime.servers.server_log import last_lines
from agentc.runtime.store.file_system import refresh
from agentc.runtime.store.layout import StoreLayout

OUT_OF_TIME = "OUT_OF_TIME"
"""For SLURM such a job has FAILED; its own status file says that it stopped before its limit."""
NOT_BEGUN = "NOT_BEGUN"
"""For SLURM such a job has FAILED; by its log its `srun` reached no controller, or no node."""

UNSTARTED = "UNSTARTED"
"""For SLURM such a job has FAILED; its wrapper wrote nothing, and its log does not say why."""

_SUBMITTED = re.compile(
    r"SLURM jobid (\d+) \(log: (.*/rule_([a-z_]+)/([0-9a-f]{32})/[^/\n]*\.log)\)"
)
FORGOTTEN = "FORGOTTEN"
"""SLURM took such a job and then knew nothing of it: a killed controller had not saved it yet."""
_LAUNCH = "timeout waiting for task launch"
_SRUN = re.compile(rf"^srun: (?:error|fatal): (?:Unable to |{_LAUNCH}).*", re.MULTILINE)
_ENDED_STEP = re.compile(r"^srun: error: .* task \d+: Terminated$", re.MULTILINE)
"""SLURM itself ended the step, as a controller does that was killed and has lost track of it."""
_OF_ARRAYS = re.compile(
    r"^rule (?P<rule>[a-z_]+):$|^    jobid: (?P<job>\d+)$|"
    r"^    wildcards: key=(?P<key>[0-9a-f]{32})$|"
    r"^Submitted array job with Snakemake IDs (?P<jobs>[\d,]+) and SLURM job ID (?P<number>\d+)\."
    r" The individual task IDs are (?P<first>\d+)-\d+\.$",
    re.MULTILINE,
)
_ENDED = re.compile(
    r"SLURM-job '(\d+(?:_\d+)?)' failed.*?SLURM status is:\s*'([A-Z_]+)'", re.DOTALL
)
_LOCAL_RULE = re.compile(r"^localrule (\w+):$", re.MULTILINE)
_FINISHED = re.compile(r"^Finished jobid: \d+ \(Rule: (\w+)\)", re.MULTILINE)
_REFUSED = re.compile(
    r"SLURM sbatch failed(?: for array job submission \([^)\n]*\))?\. "
    r"The error message was '(.*?)'\.\n|"
    r"(?:Job|Array job) submission failed with exception: (.*)",
    re.DOTALL,
)
_EXCLUDES = re.compile(r"[Ff]ailed nodes? will be excluded")
_NO_SCRIPT = "Unable to open file"
_FULL = re.compile(r"\b(?:QOS|Assoc)(?:Max|Grp)Submit\w+")
_REMEDIES = {
    OUT_OF_TIME: "its time limit was near; raise `placement: {minutes: ...}` of the stage, or"
    " `runtime` in the profile",
    "TIMEOUT": "its time limit was over; raise `placement: {minutes: ...}` of the stage, or"
    " `runtime` in the profile",
    "DEADLINE": "its deadline was over",
    "OUT_OF_MEMORY": "it used more memory than it had asked for; raise `placement: {mem_mb: ...}`"
    " of the stage, or `mem_mb` in the profile",
    NOT_BEGUN: "SLURM's controller or the daemon of its node did not answer when it was to begin",
    UNSTARTED: "its node may lack agentc's own Python, or the store; see that log",
    "NODE_FAIL": "its node failed; `slurm-requeue: true` in the profile lets SLURM start it again",
    "BOOT_FAIL": "its node did not start",
    "PREEMPTED": "a job of higher priority took its place; `slurm-requeue: true` in the profile"
    " lets SLURM start it again",
    "CANCELLED": "somebody cancelled it (`scancel`, or an administrator); another `agentc run`"
    " continues from what it has saved",
    FORGOTTEN: "its controller may have been killed before it had saved that",
    "VANISHED": "SLURM knows nothing of it any more, and it published nothing",
}
_AGAIN = (OUT_OF_TIME, NOT_BEGUN, FORGOTTEN, "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "PREEMPTED")


@dataclass(frozen=True, slots=True)
class Ending:
    """A SLURM job that did not complete: its number, the object that it was making, SLURM's word
    for how it ended or one of ours, and then what its wrapper or its log said of that; `done` where
    all that it was to make had been published before."""

    number: str
    unit: str
    status: str
    message: str = ""
    done: bool = False

    @property
    def cause(self) -> str:
        """What that means and what would mend it."""
        return _REMEDIES.get(self.status, "see its log")

    @property
    def again(self) -> bool:
        """Whether it is the cluster's doing: a new submission goes on where it was cut off, if one
        is needed at all."""
        return self.done or self.status in _AGAIN

    @property
    def limited(self) -> bool:
        """Whether its time limit ended it: another one helps only where it got further."""
        return self.status in (OUT_OF_TIME, "TIMEOUT")

    def sentence(self, work: Work) -> str:
        """How it ended, for people."""
        which = f"job {self.number} ({', '.join(ids_of(self, work))})"
        if self.status == FORGOTTEN:
            return f"SLURM took {which} and knows nothing of it"
        if self.message:
            return f"SLURM's {which}: {self.message}"
        return f"SLURM ended {which}: {self.status}"


@dataclass(frozen=True, slots=True)
class SubmissionRefusal:
    """A submission that SLURM did not take; `away` when it was not there to take it, `full` when
    the user has as many jobs in the queue as a limit allows: its name."""

    message: str
    away: bool
    full: str = ""

    @property
    def passing(self) -> bool:
        """Whether the same submission may be taken later."""
        return self.away or bool(self.full)


def read_refusals(log: str) -> tuple[SubmissionRefusal, ...]:
    """Submissions that failed, in SLURM's words."""
    found = []
    for match in _REFUSED.finditer(log):
        message = " ".join((match.group(1) or match.group(2).partition("\n    ")[0]).split())
        limit = _FULL.search(message)
        full = "" if limit is None else limit.group()
        found.append(SubmissionRefusal(message, is_away(message), full))
    return tuple(found)


def may_be_remembered(log: str, refusals: Iterable[SubmissionRefusal]) -> bool:
    """Whether a refusal may come of what that Snakemake remembers, so that another one would
    submit: it excludes nodes that failed (`--exclude=None assigned` for one without a name)."""
    return bool(_EXCLUDES.search(log)) or any(_NO_SCRIPT in one.message for one in refusals)


def submitted(log: str) -> dict[str, str]:
    """Objects that jobs make, by the jobs' numbers; those of an array are `7_1`, `7_2`, ..."""
    found = {number: f"{rule}/{key}" for number, _, rule, key in _SUBMITTED.findall(log)}
    return {**found, **_of_arrays(log)} if "Submitted array job" in log else found


def logs(log: str) -> dict[str, Path]:
    """Logs of submitted jobs, by the jobs' numbers; those of arrays are not named there."""
    return {number: Path(path) for number, path, _, _ in _SUBMITTED.findall(log)}


def _of_arrays(log: str) -> dict[str, str]:
    """Of an array the log has Snakemake's own numbers, which each Snakemake gives anew."""
    found: dict[str, str] = {}
    units: dict[str, str] = {}
    rule = job = ""
    for match in _OF_ARRAYS.finditer(log):
        if match["rule"]:
            rule, job = match["rule"], ""
        elif match["job"]:
            job = match["job"]
        elif match["key"]:
            units[job] = f"{rule}/{match['key']}"
        else:
            for task, own in enumerate(match["jobs"].split(","), start=int(match["first"])):
                if own in units:
                    found[f"{match['number']}_{task}"] = units[own]
    return found


def count_finished(log: str) -> int:
    """How many of its jobs Snakemake has seen done; those on this machine are not counted."""
    here = {"all", *_LOCAL_RULE.findall(log)}
    return sum(rule not in here for rule in _FINISHED.findall(log))


def in_words_of_plugin(ending: Ending) -> str:
    """How the plugin would report an ending, for `read_endings`."""
    return f"SLURM-job '{ending.number}' failed, SLURM status is: '{ending.status}'"


def read_endings(log: str, work: Work) -> tuple[Ending, ...]:
    """Jobs that the plugin reported as failed."""
    units = submitted(log)
    paths = logs(log)
    found = dict(_ENDED.findall(log))
    return tuple(
        _settled(Ending(number, units[number], status), work, paths.get(number))
        for number, status in found.items()
        if number in units
    )


def _settled(ending: Ending, work: Work, log: Path | None) -> Ending:
    """The ending, OUT_OF_TIME where every job of it that is not done has stopped by itself, and
    NOT_BEGUN where the log of the SLURM job says so (of an array nobody knows it)."""
    by_id = {job["id"]: object_of(job) for job in work.document["jobs"]}
    names = [by_id[name] for name in ids_of(ending, work)]
    for name in names:
        refresh(work.layout.object(name).parent)
    if names and all(map(work.layout.is_published, names)):
        return replace(ending, done=True)
    if ending.status != "FAILED":
        return ending
    tail = _tail_of(log)
    for message in _SRUN.findall(tail):
        if is_away(message) or _LAUNCH in message:
            return _not_started(ending, message)
    statuses = _open_statuses(names, work.layout)
    if not statuses:
        return ending
    if not any(_is_of(status, ending.number) for status in statuses):
        return _before_the_program(ending, tail, log)
    if not all(_is_out_of_time(status, ending.number) for status in statuses):
        return ending
    messages = dict.fromkeys(str(status.get("message")).partition("\n")[0] for status in statuses)
    return replace(ending, status=OUT_OF_TIME, message="; ".join(messages))


def _tail_of(log: Path | None) -> str:
    """The last lines of the log of a SLURM job, if it has one."""
    if log is None:
        return ""
    refresh(log.parent)
    return last_lines(log, 200)


def _open_statuses(names: Iterable[str], layout: StoreLayout) -> list[Mapping[str, Any]]:
    """What the wrappers of those that are not done have written last."""
    folders = [layout.staging(name) for name in names if not layout.is_published(name)]
    for folder in folders:
        refresh(folder)  # another node wrote it a moment ago
    return [read_json(folder / "status.json") for folder in folders]


def _not_started(ending: Ending, message: str) -> Ending:
    return replace(ending, status=NOT_BEGUN, message=f"it could not begin ({message})")


def _before_the_program(ending: Ending, tail: str, log: Path | None) -> Ending:
    """A SLURM job no wrapper of which has written a status."""
    if stopped := _ENDED_STEP.search(tail):
        return _not_started(ending, stopped.group())
    if not tail:
        return replace(ending, message="")
    message = f"it ended before its program started; its log: {log}"
    return replace(ending, status=UNSTARTED, message=message)


def _is_of(status: Mapping[str, Any], number: str) -> bool:
    """Whether a status file is of this submission, and not of one before it."""
    return bool(status) and status.get("slurm") in (None, number)


def _is_out_of_time(status: Mapping[str, Any], number: str) -> bool:
    return status.get("out_of_time") is True and _is_of(status, number)


def describe(log: Path, work: Work) -> list[str]:
    """A sentence for each job that SLURM, not its own program, brought to an end."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [
        f"{ending.sentence(work)}; {ending.cause}"
        for ending in read_endings(text, work)
        if ending.status in _REMEDIES and not ending.done
    ]


def keep_endings(endings: Iterable[Ending], work: Work) -> None:
    """Write beside each job's status how SLURM ended it, for those who look later."""
    objects = {str(job["id"]): object_of(job) for job in work.document["jobs"]}
    for ending in endings:
        if ending.status not in _REMEDIES or ending.done:
            continue
        cause, _, remedy = ending.cause.partition("; ")
        kept = SlurmEnding(
            number=ending.number,
            state=ending.status,
            sentence=ending.sentence(work),
            cause=cause,
            remedy=remedy,
        )
        for name in ids_of(ending, work):
            if not work.layout.is_published(objects[name]):
                write_ending(work.layout.staging(objects[name]), kept)


def ids_of(ending: Ending, work: Work) -> list[str]:
    """Jobs of the plan that the SLURM job was making."""
    kind, key = ending.unit.split("/")
    if kind == "session":
        sessions: Iterable[Mapping[str, Any]] = work.document.get("sessions") or []
        return [member for s in sessions if s["key"] == key for member in s["members"]]
    return [str(job["id"]) for job in work.missing if object_of(job) == ending.unit]


def progress_of(ending: Ending, work: Work) -> float:
    """How far the jobs of a submission had come, in the units that their programs count."""
    by_id = {job["id"]: object_of(job) for job in work.document["jobs"]}
    return sum(_done(work.layout, by_id[name]) for name in ids_of(ending, work))


def _done(layout: StoreLayout, name: str) -> float:
    if layout.is_published(name):
        return float("inf")
    try:
        return float(read_json(layout.staging(name) / PROGRESS_FILE)["done"])
    except (ValueError, KeyError, TypeError):
        return 0.0


class Resubmissions:
    """Those of one run, job by job."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._jobs = {str(job["id"]): job for job in work.document["jobs"]}
        self._reached: dict[str, float] = {}
        self._submitted: Counter[str] = Counter()
        self._there: set[str] = set()

    def decide(self, ending: Ending) -> tuple[bool, str]:
        """Whether the job of an ending that is worth it is submitted again, with a sentence for
        people. Call it once for each."""
        message, unit = ending.sentence(self._work), ending.unit
        if ending.done:
            # A second time the store is not what Snakemake misses.
            if unit in self._there:
                return False, message
            self._there.add(unit)
            return True, f"{message}; what it was to make is in the store already: continuing"
        got_on = self._got_on(ending)
        retries = retries_of([self._jobs[name] for name in ids_of(ending, self._work)])
        if self._submitted[unit] >= retries:
            return False, f"{message}; {_bound(retries)}"
        if not got_on:
            return (
                False,
                f"{message}; it got no further than the last time, so it is not submitted again",
            )
        self._submitted[unit] += 1
        count = f"{self._submitted[unit] + 1} of at most {retries + 1}"
        return True, f"{message}; submitting it again, to continue where it was cut off ({count})"

    def _got_on(self, ending: Ending) -> bool:
        """Whether it got further than at its last ending; the first one is always worth another."""
        done = progress_of(ending, self._work)
        before = self._reached.get(ending.unit)
        self._reached[ending.unit] = done
        return before is None or done > before or not ending.limited


def _bound(retries: int) -> str:
    if retries == 0:
        return (
            "it is not submitted again, for `placement:` says `retries: 0`. Another `agentc run` "
            "continues where it was cut off"
        )
    times = "once" if retries == 1 else f"{retries} times"
    return (
        f"it was submitted again {times}, and no more are allowed. Give it longer (`placement: "
        "{minutes: ...}`) or more of them (`retries`); another `agentc run` continues where it was "
        "cut off"
    )
