"""`agentc runs [NAME]`: what was run with the store: each experiment, at each scale, with each
choice of params."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from agentc.cli.store_argument import add_store_argument

if TYPE_CHECKING:
    from agentc.runtime.layout import StoreLayout
    from agentc.store.known_runs import KnownRun

HELP = "list what was run: by experiment, scale and params, with state, size and report"

_EPILOG = """\
RUN is what `status`, `report`, `claims` and `cancel` take: the name of the experiment, after an `@`
its scale and the params that differ from their defaults. `agentc store gc` keeps the results of
each; those of a run that --forget takes from the list are its to delete.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument("name", nargs="?", metavar="NAME", help="only runs of this experiment")
    parser.add_argument(
        "--forget",
        action="append",
        default=[],
        metavar="RUN",
        help="remove the record and the report of a run; its results stay until `store gc`",
    )
    add_store_argument(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """0; 3 when a run that is at work was to be forgotten; 5 there is none of that name."""
    import json

    from agentc.diagnostics.suggest import did_you_mean, listed
    from agentc.store.known_runs import known_runs
    from agentc.store.paths import look_into

    layout = look_into(arguments.store)
    runs = known_runs(layout)
    if arguments.forget:
        return _forget(arguments.forget, runs, layout)
    found = [run for run in runs if arguments.name in (None, run.variant.name, run.label)]
    if not found:
        names = dict.fromkeys(run.variant.name for run in runs)
        if arguments.name is None or not runs:
            print(f"agentc: nothing was run with the store {layout.root} yet", file=sys.stderr)
        else:
            hint = did_you_mean(arguments.name, names) or f"known: {listed(names)}"
            print(f"agentc: no run of `{arguments.name}`; {hint}", file=sys.stderr)
        return 5
    described = [_described(run, layout) for run in found]
    if arguments.json:
        for line in described:
            print(json.dumps(line, ensure_ascii=False, sort_keys=True))
        return 0
    print("\n".join(_table(described)))
    return 0


def _described(run: KnownRun, layout: StoreLayout) -> dict[str, Any]:
    from agentc.plan.work import find_work, read_plan
    from agentc.run.active import active_runs
    from agentc.run.outcome import report_path
    from agentc.store.objects import size_of

    document = read_plan(run.folder.last_plan)
    work = find_work(document, layout)
    page = run.folder.report if run.folder.report.is_file() else report_path(document, layout)
    at_work = any(one.is_alive() for one in active_runs(layout, run.label))
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
    from agentc.cli.store import shown_size

    rows = [("RUN", "STATE", "JOBS", "SIZE", "LAST RUN", "REPORT")]
    rows += [
        (
            each["run"],
            each["state"],
            f"{each['done']} of {each['jobs']}",
            shown_size(each["size"]),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(each["began"])),
            each["report"] or "-",
        )
        for each in described
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[5]])
        for row in rows
    ]


def _in_use(run: KnownRun) -> bool:
    """Whether a run that begins, or ends, uses its plan: `gc` knows that by the record alone."""
    from agentc.store.in_use import plan_uses

    try:
        return any(use.alive for use in plan_uses(run.folder))
    except ValueError:  # damaged, which is what a record may be forgotten for
        return False


def _forget(labels: list[str], runs: list[KnownRun], layout: StoreLayout) -> int:
    import shutil

    from agentc.diagnostics.suggest import did_you_mean, listed
    from agentc.run.active import active_runs

    known = {run.label: run for run in runs}
    for label in labels:
        if label not in known:
            hint = did_you_mean(label, known) or f"known: {listed(known)}"
            print(f"agentc: no run `{label}`; {hint}", file=sys.stderr)
            return 5
        if any(one.is_alive() for one in active_runs(layout, label)) or _in_use(known[label]):
            print(f"agentc: {label} is at work; `agentc cancel {label}` stops it", file=sys.stderr)
            return 3
    for label in labels:
        # Its last plan first: without it the folder is no run any more, however this ends.
        known[label].folder.last_plan.unlink()
        shutil.rmtree(known[label].folder.path)
        print(f"{label}: forgotten; `agentc store gc` shows what nothing needs any more")
    return 0
