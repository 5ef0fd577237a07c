"""`agentc status [NAME|SPEC]`: how the jobs of a run stand, from the store's own files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc.cli.arguments import add_format_argument
from agentc.cli.choose_run import add_run_choice, choose_run
from agentc.cli.parser import add_store_argument
from agentc.exit_codes import EXIT_FAILED
from agentc.text import shown_time, terminal_width

HELP = "show how the jobs of the last run stand"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
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
    add_format_argument(parser, "json: an object for each job, one a line")


def execute(arguments: argparse.Namespace) -> int:
    """0 when no job failed, 3 when one did, 5 when nothing is known of it."""
    import json
    from dataclasses import asdict, replace

    from agentc.cost.outcomes import outcome_lines, outcomes, read_expected
    from agentc.plan.work import find_work, object_of, read_plan
    from agentc.run.active_runs import active_runs
    from agentc.run.leftovers import left_in_queue
    from agentc.run.observe import Observer
    from agentc.run.slurm_records import read_waiting
    from agentc.run.text_view import STATE_WORDS, FoldedJobs, details, fold_jobs, in_queue, sentence
    from agentc.searching.stopping import round_lines, rounds_so_far
    from agentc.store.paths import readable_store
    from agentc.store.run_history import history_damage, read_history

    layout = readable_store(arguments.store)
    run = choose_run(layout, arguments.name, arguments)
    name = run.label
    for warning in history_damage([run.folder]):
        print(f"agentc: warning: {warning}", file=sys.stderr)
    work = find_work(read_plan(run.folder.last_plan), layout)
    runs = [(each, each.is_alive()) for each in active_runs(layout, name)]
    at_work = any(alive for _, alive in runs)
    left = ""
    if at_work:
        waiting = read_waiting(layout, name, [each.token for each, alive in runs if alive])
    else:
        waiting, left = left_in_queue([each for each, _ in runs], work)
    seen = Observer(layout, work.needed, since=0.0, waiting=lambda: waiting).look()
    expected = read_expected(run.folder)
    entries = {str(job["id"]): expected.get(object_of(job)) for job in work.needed}
    if arguments.format == "json":
        for each in seen:
            entry = entries.get(each.id)
            line = {**asdict(each), "expected_s": None if entry is None else entry["seconds"]}
            print(json.dumps(line, ensure_ascii=False, sort_keys=True))
    elif arguments.cost:
        found = outcomes(work.needed, layout, expected)
        lines = outcome_lines(found, terminal_width(sys.stdout))
        print("\n".join(lines) or f"nothing that was expected of {name} has finished yet")
    else:
        rows = list(seen) if arguments.all else fold_jobs(seen)
        servers = {name: job for name, job in waiting.jobs.items() if job.server == name}
        width = max(map(len, (*(one.id for one in rows), *servers)), default=0)
        print(f"{name}: {sum(one.state == 'done' for one in seen)} of {len(seen)} jobs are done")
        for told in round_lines(rounds_so_far(work.document, layout)):
            print(f"  {told}")
        logs = {str(job["id"]): layout.staging(object_of(job)) / "logs" / "log.txt" for job in
                work.needed}  # fmt: skip
        for one in rows:
            if isinstance(one, FoldedJobs):
                words = one.sentence(STATE_WORDS["waiting"] if at_work else "not started")
                print(f"  {one.id:<{width}}  {words}")
                for text in dict.fromkeys(text for each in one.jobs for text in details(each)):
                    print(f"  {' ' * width}  {text}")
                for text in dict.fromkeys(text for each in one.jobs for text in each.warnings):
                    print(f"  {' ' * width}  warning: {text}")
                for text in dict.fromkeys(text for each in one.jobs for text in each.health):
                    print(f"  {' ' * width}  health: {text}")
                continue
            idle = one.state == "waiting" and one.queue is None
            words = "not started" if idle and not at_work else sentence(one)
            print(f"  {one.id:<{width}}  {words}{_expectation(entries.get(one.id))}")
            for warning in one.warnings:
                print(f"  {' ' * width}  warning: {warning}")
            for text in one.health:
                print(f"  {' ' * width}  health: {text}")
            # What a shared server waits for stands at the server.
            for text in () if one.queue is not None and one.queue.server else details(one):
                print(f"  {' ' * width}  {text}")
            if one.state in ("failed", "killed") and not one.stopped:
                for text in _log_lines(logs[one.id]):
                    print(f"  {' ' * width}  {text}")
        for server, job in servers.items():
            print(f"  {server:<{width}}  {in_queue(replace(job, server=''))}")
            if job.remedy:
                print(f"  {' ' * width}  {job.remedy}")
        if left:
            print(f"  {left}")
        if not at_work and any(one.state != "done" for one in seen):
            print(f"  {_ending(read_history(run.folder))}")
    failed = any(one.state in ("failed", "killed") and not one.stopped for one in seen)
    return EXIT_FAILED if failed else 0


def _log_lines(log: Path) -> list[str]:
    """The last line of the log, and where it is."""
    from agentc.runtime.servers.server_log import last_lines
    from agentc.runtime.store.staging import attempt_begins

    tail = last_lines(log, 20, attempt_begins(log)).splitlines()
    last = next((line for line in reversed(tail) if line.strip()), "")
    return [*([f"| {last.strip()}"] if last else []), *([f"log: {log}"] if log.exists() else [])]


def _ending(history: Sequence[Mapping[str, Any]]) -> str:
    """How the last run ended."""
    last = history[-1] if history else {}
    code, ended = last.get("exit"), last.get("ended")
    if code is None or ended is None:
        return "no run is active; `agentc run` goes on"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(ended))
    names = {130: "interrupted by SIGINT", 143: "stopped by SIGTERM", 129: "stopped by SIGHUP"}
    how = f": {names[code]}" if code in names else ""
    return f"the last run ended {when} with exit code {code}{how}; `agentc run` goes on"


def _expectation(entry: Mapping[str, Any] | None) -> str:
    """` (expected: 31 s)`."""

    return "" if entry is None else f" (expected: {shown_time(entry['seconds'][1])})"
