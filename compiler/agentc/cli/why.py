"""`agentc why NAME`: why a job of the last run had to run, or could be reused."""

from __future__ import annotations

import argparse
import sys
import time

from agentc.kinds.field import Json
from agentc.plan.diff import JobDiff
from agentc.plan.record import JobRecord
from agentc.runtime.layout import StoreLayout

HELP = "say why a job or stage of the last run had to run, key by key, back to the root cause"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("name", metavar="JOB|STAGE", help="such as `sft`, `eto.2.dpo` or `eto`")
    parser.add_argument(
        "--run", metavar="EXPERIMENT", help="name of the experiment; default: the one run last"
    )
    parser.add_argument("--store", metavar="DIR", help="default: $AGENTC_STORE, else .agentc/store")


def execute(arguments: argparse.Namespace) -> int:
    """0; 5 when there was no such run or the run has no such job."""
    from agentc.cli.plan import last_plan
    from agentc.diagnostics.suggest import did_you_mean, listed
    from agentc.plan.diff import compare_plans
    from agentc.plan.record import read_records
    from agentc.store.paths import RunFolder, run_names, store_root

    layout = StoreLayout(store_root(arguments.store))
    names = run_names(layout)
    run = arguments.run or (names[0] if names else None)
    after = None if run is None else last_plan(RunFolder.of(layout, run).last_plan)
    if run is None or after is None:
        known = f"; there are {listed(names)}" if names else ""
        asked = f"the experiment `{run}` was not run" if run else "nothing was run"
        print(f"agentc: {asked} with the store {layout.root}{known}", file=sys.stderr)
        return 5
    before = last_plan(RunFolder.of(layout, run).previous_plan)
    records = read_records(after)
    wanted = [r for r in records.values() if _is_meant(arguments.name, r)]
    if not wanted:
        ids = list(dict.fromkeys([r.stage for r in records.values()] + list(records)))
        hint = did_you_mean(arguments.name, ids) or f"it has {listed(ids)}"
        print(f"agentc: {run} has no stage or job `{arguments.name}`; {hint}", file=sys.stderr)
        return 5
    diffs = compare_plans(before, after)
    for record in wanted:
        print("\n".join(_answer(record, diffs, before is not None, layout)))
    return 0


def _is_meant(name: str, record: JobRecord) -> bool:
    """A job by id, the jobs of a stage, or everything inside a repeat or round."""
    return name in (record.id, record.stage) or record.stage.startswith(f"{name}.")


def _answer(
    record: JobRecord, diffs: dict[str, JobDiff], compared: bool, layout: StoreLayout
) -> list[str]:
    from agentc.plan.tree import diff_lines

    diff = diffs[record.id]
    state = "is in the store" if layout.is_published(record.object) else "is not in the store yet"
    head = f"{record.id} ({record.object[: len(record.kind) + 9]}) {state}"
    if not compared:
        return [*_first(head), *_origin(record, layout)]
    match diff.novelty:
        case "same":
            reason = "nothing that enters its key changed since the plan before: reused"
            return [f"{head}: {reason}", *_origin(record, layout)]
        case "new":
            return [f"{head}: new since the plan before", *_origin(record, layout)]
        case _:
            lines = [f"  {line}" for line in diff_lines(diff, diffs)]
            return [f"{head}: its key changed", *lines, *_origin(record, layout)]


def _first(head: str) -> list[str]:
    return [f"{head}: this is the only plan that was run, so there is none to compare with"]


def _origin(record: JobRecord, layout: StoreLayout) -> list[str]:
    """When the object was made, and for which job, if that was another one."""
    from agentc.store.objects import read_object

    try:
        manifest = read_object(layout, record.object).manifest
    except (OSError, ValueError):
        return []
    started: Json = manifest.get("started")
    if not isinstance(started, (int, float)):
        return []
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started))
    other = f" as `{manifest.get('id')}`" if manifest.get("id") != record.id else ""
    return [f"  made {when}{other}, in {manifest.get('wall_s', 0):.0f} s"]
