"""`agentc status [NAME|SPEC]`: how the jobs of a run stand, from the store's own files; with
`--all-runs`, the runs that there are."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.cli.arguments import add_format_argument, names_spec
from agentc.cli.choose_run import add_run_choice, choose_run
from agentc.cli.parser import add_store_argument
from agentc.exit_codes import EXIT_FAILED
from agentc.text import counted, format_duration, terminal_width, wrapped_lines

if TYPE_CHECKING:
    from agentc.plan.work import Work
    from agentc.run.observe import JobSnapshot
    from agentc.run.slurm_records import WaitingJobs
    from agentc.run.text_view import FoldedJobs
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.paths import RunFolder
    from agentc.store.run_history import PastRun

HELP = "show the state of the jobs of the last run, or list all runs"

_EPILOG = """\
The RUN of --all-runs is what `status`, `report`, `logs` and `cancel` take: the name of the
experiment, after an `@` its scale and the params that differ from their defaults. `agentc store gc`
keeps the results of each; those of a run that --forget takes from the list are its to delete.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_run_choice(parser)
    add_store_argument(parser)
    parser.add_argument(
        "--cost",
        action="store_true",
        help="by stage, what was expected before the run and what it took",
    )
    parser.add_argument(
        "--all", action="store_true", help="each cell of a sweep, not a line for each stage"
    )
    parser.add_argument(
        "--all-runs",
        action="store_true",
        help="list what was run instead (with NAME, of this experiment): by experiment, scale and "
        "params, with state, size and report",
    )
    parser.add_argument(
        "--forget",
        action="append",
        default=[],
        metavar="RUN",
        help="remove the record and the report of a run; its results stay until `agentc store gc`",
    )
    add_format_argument(parser, "json: an object for each job or run, one a line")


def execute(arguments: argparse.Namespace) -> int:
    """0 when no job failed, 3 when one did, or when a run that is active was to be forgotten, 5
    when nothing is known of it."""
    if arguments.all_runs or arguments.forget:
        from agentc.cli.runs import show_runs

        chosen = arguments.scale, arguments.params, arguments.cost, arguments.all
        if any(chosen) or (arguments.name is not None and names_spec(arguments.name)):
            arguments.parser.error("--all-runs and --forget go by the name of an experiment only")
        return show_runs(arguments)
    from agentc.cost.outcomes import outcome_lines, outcomes, read_expected
    from agentc.plan.work import find_work, object_of, read_plan
    from agentc.run.active_runs import active_runs
    from agentc.run.leftovers import left_in_queue
    from agentc.run.observe import Observer
    from agentc.run.slurm_records import read_waiting
    from agentc.store.paths import readable_store
    from agentc.store.run_history import history_damage

    layout = readable_store(arguments.store)
    run = choose_run(layout, arguments.name, arguments)
    name = run.label
    for warning in history_damage([run.folder]):
        print(f"agentc: warning: {warning}", file=sys.stderr)
    work = find_work(read_plan(run.folder.last_plan), layout)
    runs = [(each, each.is_alive()) for each in active_runs(layout, name)]
    active = any(alive for _, alive in runs)
    left = ""
    if active:
        waiting = read_waiting(layout, name, [each.token for each, alive in runs if alive])
    else:
        waiting, left = left_in_queue([each for each, _ in runs], work)
    jobs = Observer(layout, work.needed, since=0.0, waiting=lambda: waiting).observe()
    expected = read_expected(run.folder)
    entries = {str(job["id"]): expected.get(object_of(job)) for job in work.needed}
    if arguments.format == "json":
        lines = list(_json_lines(jobs, entries))
    elif arguments.cost:
        found = outcomes(work.needed, layout, expected)
        lines = list(outcome_lines(found, terminal_width(sys.stdout)))
        lines = lines or [f"nothing that was expected of {name} has finished yet"]
    else:
        lines = list(_overview(run, jobs, entries, work, layout, waiting, active, arguments.all))
        lines += [f"  {left}"] if left else []
        if not active and any(job.state != "done" for job in jobs):
            lines.append(f"  {_ending(run.folder)}")
        lines = wrapped_lines(lines, terminal_width(sys.stdout))
    if lines:
        print("\n".join(lines))
    return EXIT_FAILED if any(_has_failed(job) for job in jobs) else 0


def _has_failed(job: JobSnapshot) -> bool:
    return job.state in ("failed", "killed") and not job.stopped


def _json_lines(
    jobs: Sequence[JobSnapshot], entries: Mapping[str, Mapping[str, Any] | None]
) -> Iterator[str]:
    """An object for each job, with its expected seconds."""
    import json
    from dataclasses import asdict

    for job in jobs:
        entry = entries.get(job.id)
        line = {**asdict(job), "expected_s": None if entry is None else entry["seconds"]}
        yield json.dumps(line, ensure_ascii=False, sort_keys=True)


def _overview(
    run: PastRun,
    jobs: Sequence[JobSnapshot],
    entries: Mapping[str, Mapping[str, Any] | None],
    work: Work,
    layout: StoreLayout,
    waiting: WaitingJobs,
    active: bool,
    each_cell: bool,
) -> Iterator[str]:
    """A line for each stage or, with `each_cell`, each job, with what is to be known of it below;
    then the shared servers that wait in SLURM's queue."""
    from dataclasses import replace

    from agentc.plan.work import object_of
    from agentc.run.text_view import FoldedJobs, fold_jobs, in_queue
    from agentc.searching.stopping import round_lines, rounds_progress

    rows = list(jobs) if each_cell else fold_jobs(jobs)
    servers = {name: job for name, job in waiting.jobs.items() if job.server == name}
    width = max(map(len, (*(row.id for row in rows), *servers)), default=0)
    indent = " " * 6
    yield f"{run.label}: {sum(job.state == 'done' for job in jobs)} of {len(jobs)} jobs are done"
    for line in round_lines(rounds_progress(work.document, layout)):
        yield f"  {line}"
    staging = {str(job["id"]): layout.staging(object_of(job)) for job in work.needed}
    for row in rows:
        if isinstance(row, FoldedJobs):
            words, below = _of_folded(row, active)
        else:
            log = staging[row.id] / "logs" / "log.txt"
            words, below = _of_job(row, active, entries.get(row.id), log)
        yield f"  {row.id:<{width}}  {words}"
        yield from (indent + line for line in below)
    for server, job in servers.items():
        yield f"  {server:<{width}}  {in_queue(replace(job, server=''))}"
        if job.remedy:
            yield indent + job.remedy


def _of_folded(row: FoldedJobs, active: bool) -> tuple[str, list[str]]:
    """The state of a stage's jobs, and what is said of any of them, once each."""
    from agentc.run.text_view import STATE_WORDS, details

    below = [
        *dict.fromkeys(text for job in row.jobs for text in details(job)),
        *dict.fromkeys(f"warning: {text}" for job in row.jobs for text in job.warnings),
        *_alike(f"health: {text}" for job in row.jobs for text in job.health),
    ]
    return row.sentence(STATE_WORDS["waiting"] if active else "not started"), below


def _alike(texts: Iterable[str]) -> Iterator[str]:
    """Of texts that differ by their numbers only the first, and how many more there are."""
    from agentc.runtime.health import without_numbers

    found: dict[str, list[str]] = {}
    for text in texts:
        found.setdefault(without_numbers(text), []).append(text)
    for first, *others in found.values():
        yield first + (f" (also in {counted(len(others), 'other cell')})" if others else "")


def _of_job(
    job: JobSnapshot, active: bool, entry: Mapping[str, Any] | None, log: Path
) -> tuple[str, list[str]]:
    """The state of a job, and what is said of it: the end of its log where it failed."""
    from agentc.run.text_view import details, sentence

    idle = job.state == "waiting" and job.queue is None
    words = "not started" if idle and not active else sentence(job)
    below = [
        *(f"warning: {text}" for text in job.warnings),
        *(f"health: {text}" for text in job.health),
    ]
    # What a shared server waits for stands at the server.
    if job.queue is None or not job.queue.server:
        below += details(job)
    if _has_failed(job):
        below += _log_lines(log)
    elif job.active and log.exists():
        below.append(f"log: {log} (`agentc logs {job.id} -f`)")
    return words + _expectation(entry), below


def _log_lines(log: Path) -> list[str]:
    """The last line of the log, and where it is."""
    from agentc.runtime.servers.server_log import last_lines
    from agentc.runtime.store.staging import attempt_begins

    tail = last_lines(log, 20, attempt_begins(log)).splitlines()
    last = next((line for line in reversed(tail) if line.strip()), "")
    return [*([f"| {last.strip()}"] if last else []), *([f"log: {log}"] if log.exists() else [])]


def _ending(folder: RunFolder) -> str:
    """How the last run ended."""
    from agentc.store.run_history import read_history

    history = read_history(folder)
    last = history[-1] if history else {}
    code, ended = last.get("exit"), last.get("ended")
    if code is None or ended is None:
        return "no run is active; `agentc run` continues"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(ended))
    names = {130: "interrupted by SIGINT", 143: "stopped by SIGTERM", 129: "stopped by SIGHUP"}
    how = f": {names[code]}" if code in names else ""
    return f"the last run ended {when} with exit code {code}{how}; `agentc run` continues"


def _expectation(entry: Mapping[str, Any] | None) -> str:
    """` (expected: 31 s)`."""

    return "" if entry is None else f" (expected: {format_duration(entry['seconds'][1])})"
