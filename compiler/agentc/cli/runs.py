"""`agentc runs [NAME]`: what was run with the store, by experiment, scale and params. `agentc
cancel [NAME]`: stop a run that another shell started, on this machine or in a queue."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentc.cli.arguments import add_format_argument
from agentc.cli.parser import Command, add_store_argument
from agentc.exit_codes import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_USAGE, CommandError
from agentc.text import fitted, shown_size, terminal_width

if TYPE_CHECKING:
    from agentc.run.active_runs import ActiveRun
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.run_history import DamagedRun, KnownRun


_RUNS_HELP = "list what was run: by experiment, scale and params, with state, size and report"

_RUNS_EPILOG = """\
RUN is what `status`, `report`, `claims` and `cancel` take: the name of the experiment, after an `@`
its scale and the params that differ from their defaults. `agentc store gc` keeps the results of
each; those of a run that --forget takes from the list are its to delete.
"""

_REMEDY = "running it again writes its plan anew, --forget removes its record"


def _configure_runs(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _RUNS_EPILOG
    parser.add_argument("name", nargs="?", metavar="NAME", help="only runs of this experiment")
    parser.add_argument(
        "--forget",
        action="append",
        default=[],
        metavar="RUN",
        help="remove the record and the report of a run; its results stay until `store gc`",
    )
    add_store_argument(parser)
    add_format_argument(parser, "json: an object a line")


def _runs(arguments: argparse.Namespace) -> int:
    """0; 3 when a run that is at work was to be forgotten; 5 there is none of that name."""
    import json

    from agentc.diagnostics.suggest import did_you_mean, listed
    from agentc.store.paths import readable_store
    from agentc.store.run_history import damaged_runs, history_damage, list_runs

    layout = readable_store(arguments.store)
    runs, damaged = list_runs(layout), damaged_runs(layout)
    if arguments.forget:
        return _forget(arguments.forget, [*runs, *damaged], layout)
    chosen = [run for run in runs if arguments.name in (None, run.variant.name, run.label)]
    # Of what experiment it was its label tells, as far as anything does.
    lost = [run for run in damaged
            if arguments.name in (None, run.label, run.label.partition("@")[0])]  # fmt: skip
    for record in lost:
        print(f"agentc: {record.label} is damaged: {record.why}; {_REMEDY}", file=sys.stderr)
    for warning in history_damage(run.folder for run in chosen):
        print(f"agentc: warning: {warning}", file=sys.stderr)
    if lost and not chosen:
        return EXIT_NOT_FOUND
    if not chosen:
        names = dict.fromkeys(run.variant.name for run in runs)
        if arguments.name is None or not runs:
            print(f"agentc: nothing was run with the store {layout.root} yet", file=sys.stderr)
        else:
            hint = did_you_mean(arguments.name, names) or f"known: {listed(names)}"
            print(f"agentc: no run of `{arguments.name}`; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    described = [_described(run, layout) for run in chosen]
    if arguments.format == "json":
        for line in described:
            print(json.dumps(line, ensure_ascii=False, sort_keys=True))
        return 0
    print("\n".join(_table(described)))
    return 0


def _described(run: KnownRun, layout: StoreLayout) -> dict[str, Any]:
    from agentc.plan.work import find_work, read_plan
    from agentc.run.active_runs import active_runs
    from agentc.run.report_page import shown_page
    from agentc.store.objects import size_of

    document = read_plan(run.folder.last_plan)
    work = find_work(document, layout)
    page = shown_page(document, layout)
    at_work = any(active.is_alive() for active in active_runs(layout, run.label))
    state = "at work" if at_work else "complete" if not work.missing else "unfinished"
    return {
        "run": run.label,
        "name": run.variant.name,
        "scale": run.variant.scale,
        "params": dict(run.params),
        "state": state,
        "done": len(work.present),
        "jobs": len(work.needed),
        "began": run.began,
        "size": sum(size_of(layout.object(f"{job['kind']}/{job['key']}")) for job in work.present),
        "report": None if page is None else str(page),
    }


def _table(described: list[dict[str, Any]]) -> list[str]:
    rows = [("RUN", "STATE", "JOBS", "SIZE", "LAST RUN", "REPORT")]
    rows += [
        (
            run["run"],
            run["state"],
            f"{run['done']} of {run['jobs']}",
            shown_size(run["size"]),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(run["began"])),
            run["report"] or "-",
        )
        for run in described
    ]
    return fitted(rows, terminal_width(sys.stdout))


def _in_use(run: KnownRun | DamagedRun) -> bool:
    """Whether a run that begins, or ends, uses its plan: `gc` knows that by the record alone."""
    from agentc.store.run_history import plan_uses

    try:
        return any(use.alive for use in plan_uses(run.folder))
    except ValueError:  # damaged, which is what a record may be forgotten for
        return False


def _forget(labels: list[str], runs: Sequence[KnownRun | DamagedRun], layout: StoreLayout) -> int:
    import os
    import shutil

    from agentc.diagnostics.suggest import did_you_mean, listed
    from agentc.run.active_runs import active_runs

    by_label = {run.label: run for run in runs}
    for label in labels:
        if label not in by_label:
            hint = did_you_mean(label, by_label) or f"known: {listed(by_label)}"
            print(f"agentc: no run `{label}`; {hint}", file=sys.stderr)
            return EXIT_NOT_FOUND
        if any(active.is_alive() for active in active_runs(layout, label)) or _in_use(
            by_label[label]
        ):
            print(f"agentc: {label} is at work; `agentc cancel {label}` stops it", file=sys.stderr)
            return EXIT_FAILED
    for label in labels:
        # By one rename: half a record would be a damaged one.
        place = layout.root / "trash" / f"{time.time_ns()}-{os.getpid()}-{label}"
        place.parent.mkdir(exist_ok=True)
        by_label[label].folder.path.rename(place)
        shutil.rmtree(place, ignore_errors=True)
        print(f"{label}: forgotten; `agentc store gc` shows what nothing needs any more")
    return 0


_CANCEL_HELP = "stop a run that another shell started: its jobs, processes and queued jobs"

_CANCEL_EPILOG = """\
The run stops as it does after Ctrl-C: finished work is kept, and `agentc run` goes on later.
Of a run that was killed, the jobs that it left in a queue and its processes here are ended.
"""
_PATIENCE_S = 120.0


def _configure_cancel(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _CANCEL_EPILOG
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="the experiment, or one run of it as `agentc runs` writes it (default: the one at"
        " work)",
    )
    add_store_argument(parser)


def _cancel(arguments: argparse.Namespace) -> int:
    """0 when nothing of it is left, 2 when several experiments are at work and none is named,
    3 when something does not end or is another user's, 5 when no run is active."""
    from agentc.run.active_runs import active_runs
    from agentc.run.leftovers import refusal
    from agentc.store.paths import readable_store

    layout = readable_store(arguments.store)
    active = active_runs(layout)
    runs = [run for run in active if run.may_be_ended]
    others = [run for run in active if not run.may_be_ended and _is_meant(run, arguments.name)]
    if others and not any(_is_meant(run, arguments.name) for run in runs):
        for run in others:
            print(f"agentc: {refusal(run)}", file=sys.stderr)
        return EXIT_FAILED
    names = sorted({run.name for run in runs})
    if not names:
        print(f"agentc: no run is active with the store {layout.root}", file=sys.stderr)
        return EXIT_NOT_FOUND
    name = _active_name(arguments.name or None, names)
    troubles = [_end(run, layout) for run in runs if run.name == name]
    for trouble in filter(None, troubles):
        print(f"agentc: {trouble}", file=sys.stderr)
    return EXIT_FAILED if any(troubles) else 0


class _NoActiveRunError(CommandError):
    """A name means no active run, or leaves a choice."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code


def _active_name(typed: str | None, names: Sequence[str]) -> str:
    """The label of the active run that is meant. A name without scale and params means the only
    active run of that experiment. Raises _NoActiveRunError."""
    from agentc.diagnostics.suggest import did_you_mean

    if typed in names:
        return str(typed)
    # Without a name the only active run is meant.
    meant = [label for label in names if typed in (None, label.partition("@")[0])]
    if len(meant) > 1:
        raise _NoActiveRunError(f"active runs: {', '.join(meant)}; name one", EXIT_USAGE)
    if not meant:
        hint = did_you_mean(str(typed), names) or f"active runs: {', '.join(names)}"
        raise _NoActiveRunError(f"no run of `{typed}` is active; {hint}", EXIT_NOT_FOUND)
    return meant[0]


def _is_meant(run: ActiveRun, name: str | None) -> bool:
    """Whether a name stands for the run: its label, or the experiment; none for every run."""
    return name is None or name in (run.name, run.name.partition("@")[0])


def _end(run: ActiveRun, layout: StoreLayout) -> str:
    """Stop one run; returns what is amiss, or ""."""
    from agentc.run.leftovers import clear_queue, end_leftover_processes

    where = f"process {run.pid} on {run.host}"
    if run.is_alive():
        print(f"{run.name}: stopping ({where})", flush=True)
        run.ask_to_stop()
        deadline = time.monotonic() + _PATIENCE_S
        while run.is_alive():
            if time.monotonic() > deadline:
                return f"{run.name} ({where}) has not stopped after {_PATIENCE_S:.0f} s"
            time.sleep(0.2)
    else:
        print(f"{run.name}: its run ({where}) was killed; ending what it left", flush=True)
    trouble = clear_queue([run])
    ended = end_leftover_processes(layout)
    if ended:
        print(f"ended {ended} processes that were left behind")
    if not trouble:
        run.forget()
        print(f"{run.name}: stopped; finished work is kept, run it again to go on")
    return trouble


COMMANDS = {
    "runs": Command(_RUNS_HELP, _configure_runs, _runs),
    "cancel": Command(_CANCEL_HELP, _configure_cancel, _cancel),
}
