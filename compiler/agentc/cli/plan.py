"""`agentc plan SPEC`: what a run would do, and what changed since the last one."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from agentc.cli.arguments import add_spec_arguments, show_diagnostics
from agentc.kinds.field import Json
from agentc.plan.diff import JobDiff
from agentc.plan.job import Plan
from agentc.plan.work import Work

_MOST_CAUSES = 20
"""Every job of a long chain may be a cause of all that follow: half the square of its length."""

HELP = "show what a run would do: jobs, what the store has, what changed and why"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_spec_arguments(parser)
    parser.add_argument("--store", metavar="DIR", help="default: $AGENTC_STORE, else .agentc/store")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="output form")
    parser.add_argument(
        "--full", action="store_true", help="settings, inputs, servers and keys of every job"
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 with the plan on standard output; 1 when the spec has errors."""
    from agentc.backend_api import load_backends
    from agentc.compilation import compile_spec
    from agentc.plan.diff import compare_plans
    from agentc.plan.render import plan_document
    from agentc.plan.tree import plan_text
    from agentc.plan.work import plan_work
    from agentc.runtime.layout import StoreLayout
    from agentc.store.paths import RunFolder, store_root

    compiled = compile_spec(arguments.spec, arguments.params, load_backends())
    if compiled.plan is None:
        show_diagnostics(compiled.diagnostics, arguments.format)
        return 1
    show_diagnostics(compiled.diagnostics)
    plan = compiled.plan
    layout = StoreLayout(store_root(arguments.store))
    before = last_plan(RunFolder.of(layout, plan.name).last_plan)
    diffs = compare_plans(before, plan_document(plan))
    work = plan_work(plan, layout.is_published)
    if arguments.format == "json":
        print(json.dumps(_document(plan, work, diffs), indent=2, ensure_ascii=False))
    else:
        shown = None if before is None else diffs
        print(plan_text(plan, work, shown, full=arguments.full), end="")
    return 0


def last_plan(path: Path) -> dict[str, Json] | None:
    """A plan document that a run left, or None when there is none that can be read."""
    from agentc.plan.render import read_document

    try:
        return read_document(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _document(plan: Plan, work: Work, diffs: Mapping[str, JobDiff]) -> dict[str, Json]:
    member_of = {member: session.id for session in plan.sessions for member in session.members}
    return {
        "name": plan.name,
        "server_starts": work.server_starts,
        "saved_server_starts": work.saved_starts,
        "jobs": [
            {
                "id": job.id,
                "stage": job.stage,
                "kind": job.kind,
                "round": job.round,
                "backend": job.backend,
                "object": job.object,
                "state": work.states[job.id],
                "session": member_of.get(job.id),
                "since_last_run": diffs[job.id].novelty,
                "changes": [
                    {"path": change.path, "before": change.before, "after": change.after}
                    for change in diffs[job.id].changes
                ],
                "because_of": list[Json](diffs[job.id].nearest_roots(_MOST_CAUSES)),
                "causes": diffs[job.id].root_count,
            }
            for job in plan.jobs
        ],
    }
