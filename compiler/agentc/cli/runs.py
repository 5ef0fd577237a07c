"""`agentc status --all-runs [NAME]`: what was run with the store, by experiment, scale and params;
`agentc status --forget RUN`: take a run from that list."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentc.exit_codes import EXIT_FAILED, EXIT_NOT_FOUND
from agentc.text import fitted, format_size, terminal_width

if TYPE_CHECKING:
    from agentc.runtime.store.layout import StoreLayout
    from agentc.store.run_history import DamagedRun, PastRun


_REMEDY = "running it again writes its plan again, --forget removes its record"


def show_runs(arguments: argparse.Namespace) -> int:
    """The exit code: 0; 3 when an active run was to be forgotten; 5 there is none of that name."""
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


def _described(run: PastRun, layout: StoreLayout) -> dict[str, Any]:
    from agentc.plan.work import find_work, read_plan
    from agentc.run.active_runs import active_runs
    from agentc.run.report_page import published_page
    from agentc.store.objects import size_of

    document = read_plan(run.folder.last_plan)
    work = find_work(document, layout)
    page = published_page(document, layout)
    at_work = any(active.is_alive() for active in active_runs(layout, run.label))
    state = "running" if at_work else "complete" if not work.missing else "unfinished"
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
            format_size(run["size"]),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(run["began"])),
            run["report"] or "-",
        )
        for run in described
    ]
    return fitted(rows, terminal_width(sys.stdout))


def _in_use(run: PastRun | DamagedRun) -> bool:
    """Whether a run that begins, or ends, uses its plan: `gc` knows that by the record alone."""
    from agentc.store.run_history import plan_uses

    try:
        return any(use.alive for use in plan_uses(run.folder))
    except ValueError:  # damaged, which is what a record may be forgotten for
        return False


def _forget(labels: list[str], runs: Sequence[PastRun | DamagedRun], layout: StoreLayout) -> int:
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
            print(f"agentc: {label} is running; `agentc cancel {label}` stops it", file=sys.stderr)
            return EXIT_FAILED
    for label in labels:
        # By one rename: half a record would be a damaged one.
        place = layout.root / "trash" / f"{time.time_ns()}-{os.getpid()}-{label}"
        place.parent.mkdir(exist_ok=True)
        by_label[label].folder.path.rename(place)
        shutil.rmtree(place, ignore_errors=True)
        print(f"{label}: forgotten; `agentc store gc` shows what nothing needs any more")
    return 0
