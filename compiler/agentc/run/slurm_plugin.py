"""Snakemake with its executor plugin for SLURM (2.8.0) adapted, for runs whose jobs are in SLURM's
queue: `python -m agentc.run.slurm_plugin [--slurm-ends FILE] [--slurm-taken-over FILE] ...` takes
Snakemake's arguments.

A status query that fails is sent again; ends that slurm_watch.py saw in the queue reach
Snakemake at once; jobs of a killed run that are in the queue are taken over instead of submitted
again; a node that failed is excluded from later submissions only by a name; arrays wait for no jobs
that come later; and names of jobs say what they do, `agentc-<token>-<stage>`: the plugin gives all
jobs of a run one name.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import re
import runpy
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from agentc.run.slurm_queue import ENDS, TAKEN, EndsFile, read_taken_over

PLUGIN = "snakemake_executor_plugin_slurm"
_TICK_S = 1.0
_AGAIN_S = (5.0, 10.0, 20.0, 40.0, 60.0)
"""Pauses after the first, the second, ... status query in a row without an answer."""
_NODES = re.compile(r"[\w.,\[\]-]+")
_NEEDED = (
    "Executor",
    "SubmittedJobInfo",
    "query_job_status",
    "get_min_job_age",
    "get_job_wildcards",
)
TakenOver = dict[str, tuple[str, str]]
"""Numbers and names of jobs of killed runs, by the object that they make."""


class NodeNames(set[str]):
    """Nodes that later submissions leave out. For a job that is queued again accounting has
    `None assigned`, which `sbatch` would take for the name of a script."""

    def add(self, element: str) -> None:
        if _NODES.fullmatch(element):
            super().add(element)


def adapt(plugin: ModuleType, ends: Path, taken: TakenOver | None = None) -> bool:
    """Adapt the imported plugin; False where it is not made as this one expects."""
    if not all(hasattr(plugin, name) for name in _NEEDED):
        return False
    answers: dict[str, str] = {}
    names: Any = plugin
    names.query_job_status = _first_words(plugin.query_job_status, answers)
    names.get_min_job_age = _query_once(plugin.get_min_job_age)
    names.Executor = _patient(plugin, EndsFile(ends), answers, dict(taken or {}))
    if hasattr(plugin, "pending_jobs_for_rule"):
        names.pending_jobs_for_rule = _none_to_wait_for
    return True


def _none_to_wait_for(dag: Any, rule_name: str) -> int:
    """How many jobs an array has to wait for. By the plugin's count those that `--jobs` leaves for
    later, and it submits none of the others meanwhile: Snakemake gives each job once."""
    return 0


def import_adapted(ends: Path, taken: TakenOver) -> None:
    """Import the plugin, where it is installed, as Snakemake will find it."""
    if importlib.util.find_spec(PLUGIN) is not None and not adapt(
        importlib.import_module(PLUGIN), ends, taken
    ):
        print(f"agentc: {PLUGIN} is not as expected; ends of jobs may be seen late", flush=True)


def _first_words(
    query: Callable[..., Awaitable[tuple[dict[str, str] | None, float | None]]],
    answers: Mapping[str, str],
) -> Callable[..., Awaitable[tuple[dict[str, str] | None, float | None]]]:
    """The status query, which `answers` replace while there are any. `CANCELLED by 0` is CANCELLED
    there: the plugin compares whole words, and would wait for such a job for ever."""

    async def ask(command: str, logger: Any) -> tuple[dict[str, str] | None, float | None]:
        if answers:
            return dict(answers), 0.0
        states, seconds = await query(command, logger)
        if states is not None:
            states = {number: (state.split() or [""])[0] for number, state in states.items()}
        return states, seconds

    return ask


def _query_once(query: Callable[[], int | None]) -> Callable[[], int | None]:
    """A setting of the cluster, which the plugin requests before each look."""
    known: list[int] = []

    def ask() -> int | None:
        if not known:
            found = query()
            if found is None:
                return None
            known.append(found)
        return known[0]

    return ask


def _patient(plugin: Any, ends: EndsFile, answers: dict[str, str], taken: TakenOver) -> Any:
    """The plugin's executor, which forgets no job that it has no answer about, and submits none
    that is in the queue already."""
    base: Any = plugin.Executor
    if not hasattr(base, "_report_job_submission_threadsafe"):
        taken = {}  # what is then submitted again waits for the lock of its object

    class PatientExecutor(base):  # type: ignore[misc]
        """Jobs that a look neither yields nor reports are looked at again."""

        _failed_nodes: set[str]
        next_seconds_between_status_checks: float
        _silent = 0
        _due = 0.0

        def __init__(self, *given: Any, **named: Any) -> None:
            # The thread that looks at jobs is started in here.
            self._reported: set[str] = set()
            self._heeded: set[tuple[str, str]] = set()
            super().__init__(*given, **named)

        def __post_init__(self, *given: Any, **named: Any) -> None:
            super().__post_init__(*given, **named)
            self._failed_nodes = NodeNames(self._failed_nodes)

        def run_job(self, job: Any) -> None:
            if not self._take_over(job):
                super().run_job(job)

        def run_array_jobs(self, jobs: Sequence[Any]) -> None:
            left = [job for job in jobs if not self._take_over(job)]
            if len(left) == 1:
                super().run_job(left[0])
            elif left:
                super().run_array_jobs(left)

        def _take_over(self, job: Any) -> bool:
            """Whether a killed run submitted it: its number is then reported as that of a
            submission. After a failure the job is submitted as usual."""
            if not taken or job.is_group():
                return False
            key = plugin.get_job_wildcards(job)
            number, _ = taken.pop(f"{job.name}/{key}", ("", ""))
            if not number:
                return False
            log = Path(self.slurm_logdir) / f"rule_{job.name}" / key / f"{number}.log"
            # slurm_endings.py reads these words.
            self.logger.info(
                f"Job {job.jobid} of a killed run has SLURM jobid {number} (log: {log})."
            )
            submitted = plugin.SubmittedJobInfo(
                job, external_jobid=number, aux={"slurm_logfile": log}
            )
            self._report_job_submission_threadsafe(submitted)
            return True

        async def check_active_jobs(self, active_jobs: Sequence[Any]) -> AsyncIterator[Any]:
            fresh = self._fresh()
            ended = [job for job in active_jobs if job.external_jobid in fresh]
            others = [job for job in active_jobs if job.external_jobid not in fresh]
            if ended:
                pause = self.next_seconds_between_status_checks
                answers.update({job.external_jobid: fresh[job.external_jobid] for job in ended})
                self._heeded |= set(answers.items())
                try:
                    async for job in self._poll_jobs(ended):
                        yield job
                finally:
                    answers.clear()
                # What others may have needs no look sooner than it was due.
                self.next_seconds_between_status_checks = pause
            if others and time.monotonic() < self._due:
                for job in others:
                    yield job
            elif others or not active_jobs:
                self._due = 0.0
                async for job in self._poll_jobs(others):
                    yield job

        async def _poll_jobs(self, jobs: Sequence[Any]) -> AsyncIterator[Any]:
            self._reported = set()
            left = {job.external_jobid: job for job in jobs}
            async for job in super().check_active_jobs(jobs):
                left.pop(job.external_jobid, None)
                yield job
            unanswered = [job for number, job in left.items() if number not in self._reported]
            if not unanswered:
                self._silent = 0
                return
            if not self._silent:
                self.logger.warning("SLURM gives no states of jobs; the query will be sent again.")
            self.next_seconds_between_status_checks = _AGAIN_S[min(self._silent, len(_AGAIN_S) - 1)]
            self._silent += 1
            for job in unanswered:
                yield job

        def get_status_command(self) -> str:
            # Of accounting it would request the reason of an end, step by step.
            return "squeue" if answers else str(super().get_status_command())

        async def sleep(self) -> None:
            """Until the next look, or until an end is written that was not looked at."""
            if time.monotonic() >= self._due:
                self._due = time.monotonic() + self.next_seconds_between_status_checks
            while self.wait and not self._ended():
                left = self._due - time.monotonic()
                if left <= 0:
                    return
                await asyncio.sleep(min(_TICK_S, left))

        def report_job_success(self, job_info: Any) -> None:
            self._reported.add(job_info.external_jobid)
            super().report_job_success(job_info)

        def report_job_error(self, job_info: Any, *given: Any, **named: Any) -> None:
            self._reported.add(job_info.external_jobid)
            super().report_job_error(job_info, *given, **named)

        def _ended(self) -> bool:
            """Whether a job that it waits for is among them."""
            fresh = self._fresh()
            return bool(fresh) and any(job.external_jobid in fresh for job in self.active_jobs)

        def _fresh(self) -> dict[str, str]:
            """Ends of jobs of this Snakemake that it has not heeded yet."""
            known = ends.read()
            return {n: state for n, state in known.items() if (n, state) not in self._heeded}

    return PatientExecutor


_NAMING = ("get_submit_command", "query_job_status_sacct", "query_job_status_squeue")
_CELL = re.compile(r"@[^.:]*")
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 60
_MOST = 500
"""Names that a query lists; further stages get the run's own name."""


def stage_of(work: Sequence[str]) -> str:
    """The stage of a job, by the words that its rule has for it (`--job eto.2.dpo`), in letters
    that SLURM's commands take; cells of a sweep share a name."""
    name = _CELL.sub("", str(work[-1])) if work else ""
    return _OTHER.sub("-", name).strip("-")[:_LONGEST]


def name_by_stage(plugin: ModuleType, earlier: Iterable[str] = ()) -> bool:
    """Adapt the imported plugin; False where it is not made as this one expects."""
    if not all(hasattr(plugin, name) for name in _NAMING):
        return False
    names = StageNames(earlier)
    adapted: Any = plugin
    adapted.get_submit_command = names.submitting(plugin.get_submit_command)
    for query in _NAMING[1:]:
        setattr(adapted, query, names.asking(getattr(plugin, query)))
    return True


def import_named(earlier: Iterable[str] = ()) -> None:
    """Import the plugin, where it is installed, as Snakemake will find it."""
    if importlib.util.find_spec(PLUGIN) is not None:
        name_by_stage(importlib.import_module(PLUGIN), earlier)


class StageNames:
    """Names that jobs were submitted under, besides the one that the plugin knows; `earlier` are
    those of jobs that are taken over."""

    def __init__(self, earlier: Iterable[str] = ()) -> None:
        self._known: dict[str, None] = dict.fromkeys(earlier)

    def name(self, run: str, work: Sequence[str]) -> str:
        """The name of a job; `run` is the plugin's for all of them, `<prefix>_<uuid>`."""
        prefix, _, _ = run.rpartition("_")
        stage = stage_of(work)
        name = f"{prefix}-{stage}" if prefix and stage else run
        if name not in self._known and len(self._known) >= _MOST:
            return run
        self._known[name] = None
        return name

    def submitting(self, command: Callable[..., str]) -> Callable[..., str]:
        """The command line of a submission, with the job's own name."""

        def submit(job: Any, params: Mapping[str, Any], *given: Any, **named: Any) -> str:
            work = getattr(getattr(job, "params", None), "work", None) or ()
            work = [work] if isinstance(work, str) else list(work)
            own = self.name(str(params["run_uuid"]), work)
            return command(job, {**params, "run_uuid": own}, *given, **named)

        return submit

    def asking(self, query: Callable[[str], str]) -> Callable[[str], str]:
        """A query for the states of jobs by name, with all names."""

        def ask(run: str) -> str:
            return query(",".join(dict.fromkeys([run, *self._known])))

        return ask


def main() -> None:
    """Adapt the plugin as the arguments say, then be Snakemake."""
    files: dict[str, Path] = {}
    while sys.argv[1:2] and sys.argv[1] in (ENDS, TAKEN):
        files[sys.argv[1]] = Path(sys.argv[2])
        del sys.argv[1:3]
    taken = read_taken_over(files[TAKEN]) if TAKEN in files else {}
    if ENDS in files:
        import_adapted(files[ENDS], taken)
    import_named(name for _, name in taken.values())
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
