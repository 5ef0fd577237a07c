"""`agentc plan SPEC`: what a run would do, and what changed since the last one; with `--cost` what
it would cost (cost.py), with `--preflight` what it would fail of (preflight.py)."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.cli import cost
from agentc.cli.arguments import (
    add_format_argument,
    add_locked_argument,
    add_spec_arguments,
    show_diagnostics,
    wants_colour,
)
from agentc.cli.parser import add_store_argument
from agentc.cli.spec_work import find_spec_work
from agentc.text import terminal_width, wrapped_lines

if TYPE_CHECKING:
    from agentc.cost import Estimate, Summary
    from agentc.kinds.field import Json
    from agentc.plan.review import Review


HELP = "what a run would do and why; --cost: what it would take, --preflight: what would fail"

_OF_SERVER = ("id", "scope", "replicas", "resources", "clients")

_EPILOG = """\
marks:
  +  runs: new                     ~  runs: it changed since the last run
  >  runs: not finished yet        =  the store has it
  ·  is not there, and nothing that must run needs it
Under a changed job is each setting or input of its own that changed; what only follows from
other jobs names them.

--cost: `based on` says where a stage's time comes from: `prior`, stated formulas and constants
(docs/cost.md); `3 runs of this stage` or `3 like jobs`, the prior corrected by these finished jobs
of the store; `its own run`, the same job's earlier time. Bands reach from the 10th to the 90th
percentile.
--preflight: only what has to run is checked.

exit codes: 0 done (of --preflight: no problem; there may be warnings), 1 the spec has errors,
2 wrong command line, no such profile, 5 no such stage, 7 of --preflight: a run would fail
"""
_MODES: Mapping[str, tuple[str, ...]] = {
    "all": ("", "--cost"),
    "full": ("",),
    "offline": ("--preflight",),
    **dict.fromkeys(("jobs", "on"), ("", "--cost")),
    **dict.fromkeys(cost.OPTIONS, ("--cost",)),
}
"""The forms of a plan that an option belongs to; those that are not listed belong to all."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_spec_arguments(parser)
    add_locked_argument(parser)
    add_store_argument(parser)
    parser.add_argument(
        "--profile",
        metavar="NAME|DIR",
        help="as a run with this Snakemake profile; also what each stage requests, with the source"
        " of each value (default: $SNAKEMAKE_PROFILE, as for `agentc run`)",
    )
    cost.add_place_arguments(parser)
    parser.add_argument("--until", metavar="STAGE", help="only this stage and what it needs")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--cost",
        action="store_true",
        help="instead: time, GPU-hours, tokens and disk of a run, by stage, with the sources",
    )
    form.add_argument(
        "--preflight",
        action="store_true",
        help="instead: what a run would fail of: cluster limits, GPUs, disk, software, tokens",
    )
    parser.add_argument(
        "--all", action="store_true", help="list every job, also what is usually folded"
    )
    parser.add_argument(
        "--full", action="store_true", help="settings, inputs, servers and keys of every job"
    )
    cost.add_arguments(parser.add_argument_group("with --cost"))
    parser.add_argument_group("with --preflight").add_argument(
        "--offline", action="store_true", help="query neither SLURM nor the model hub"
    )
    add_format_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0 with the plan on standard output; 1 when the spec has errors, 2 for a wrong command line or
    no such profile, 5 for no such stage, 7 with --preflight for a problem."""
    form = "--cost" if arguments.cost else "--preflight" if arguments.preflight else ""
    for name, forms in _MODES.items():
        value = getattr(arguments, name)
        if value not in (None, False) and value != [] and form not in forms:
            option = "-j" if name == "jobs" else f"--{name.replace('_', '-')}"
            arguments.parser.error(
                f"{option} has no meaning with {form}" if form else f"{option} goes with {forms[0]}"
            )
    if arguments.cost:
        return cost.show_cost(arguments)
    if arguments.preflight:
        from agentc.cli.preflight import show_preflight

        return show_preflight(arguments)
    return _show_plan(arguments)


def _show_plan(arguments: argparse.Namespace) -> int:
    """The exit code, with the plan on standard output."""
    from agentc.backend_api import load_backends
    from agentc.cli.cost import cost_to_run, find_place, show_estimate
    from agentc.cost.render import cost_column
    from agentc.diagnostics import Sink
    from agentc.memory.render import memory_text, on_card
    from agentc.placement import read_requests, resolve_placement
    from agentc.placement.profile import find_profile
    from agentc.placement.render import placement_document, placement_text
    from agentc.plan.review import review_plan
    from agentc.plan.tree import coloured, plan_text
    from agentc.run.past import path_before, read_past
    from agentc.searching.stopping import round_lines
    from agentc.software.requirements import needed_by_plan, report_lacking

    profile = find_profile(arguments.profile, os.environ)
    requests = None if profile is None else read_requests(profile)
    table = load_backends()
    typed = find_spec_work(arguments, table, until=arguments.until, form=arguments.format)
    work, layout, rounds = typed.work, typed.layout, typed.rounds
    assert typed.compiled.plan is not None
    lacking = Sink()
    needed = needed_by_plan(typed.compiled.plan, {str(job["id"]) for job in work.missing})
    report_lacking(needed, layout, lacking, severity="warning")
    show_diagnostics(lacking.sorted())
    path = path_before(layout, work.document)
    review = review_plan(work, None if path is None else read_past(path))
    place = find_place(arguments.on, profile, arguments.jobs)
    estimates, expected = cost_to_run(work, typed.compiled, table, place)
    placed = () if requests is None else resolve_placement(work.document, requests)
    if arguments.format == "json":
        described = _document(review, estimates, expected)
        if rounds:
            described["stopping"] = [each.document() for each in rounds]
        if requests is not None:
            described["placement"] = placement_document(placed, requests.profile)
        print(json.dumps(described, indent=2, ensure_ascii=False))
    else:
        width = terminal_width(sys.stdout)
        since = f"the last run ({_when(path)})" if review.compared and path is not None else ""
        text = plan_text(
            review,
            every=arguments.all,
            full=arguments.full,
            since=since,
            costs=cost_column(estimates),
            width=width,
        )
        print(coloured(text) if wants_colour(sys.stdout) else text, end="")
        for line in wrapped_lines(round_lines(rounds), width):
            print(line)
        if expected is not None:
            show_estimate(expected)
            print("  `agentc plan --cost` shows the sources")
        holders = (*work.missing, *_shared_servers(work.document))
        if needs := memory_text((on_card(each, place.model) for each in holders), width):
            print(f"\n{needs}", end="")
        if requests is not None:
            text = placement_text(placed, requests.profile)
            print("\n".join(["", *wrapped_lines(text.splitlines(), width)]))
    return 0


def _server_ranks(job: Mapping[str, Any]) -> dict[str, Json]:
    """The commands of a server that spreads over the nodes of its job."""
    from agentc.plan.tree import rank_commands

    for lease in job["leases"]:
        if "ranks" in lease and not lease.get("server"):
            return {"server_ranks": [*rank_commands(lease)]}
    return {}


def _shared_servers(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in document.get("servers") or () if each["scope"] == "shared"]


def _when(path: Path) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(path.stat().st_mtime))


def _document(
    review: Review, estimates: Mapping[str, Estimate], expected: Summary | None
) -> dict[str, Json]:
    from agentc.cost.render import estimate_entry, total_entry
    from agentc.plan.review import change_document
    from agentc.plan.tree import rank_commands

    work = review.work
    return {
        "name": review.name,
        "counts": {state: work.count(state) for state in ("run", "cached", "unneeded")},
        "compared": review.compared,
        "server_starts": work.server_starts,
        "saved_server_starts": work.saved_starts,
        "servers": [
            {
                **{name: server[name] for name in _OF_SERVER},
                **(
                    {"ranks": [*rank_commands(server["lease"])]}
                    if "ranks" in server["lease"]
                    else {}
                ),
            }
            for server in work.document.get("servers") or []
        ],
        "gone": list(review.gone),
        "estimate": None if expected is None else total_entry(expected),
        "jobs": [
            {
                "id": item.id,
                "stage": item.job["stage"],
                "kind": item.job["kind"],
                "round": item.job["round"],
                "backend": item.job["backend"],
                **_server_ranks(item.job),
                "mark": item.mark,
                "session": item.session,
                **change_document(item),
                "estimate": estimate_entry(estimates[item.id]) if item.id in estimates else None,
                "memory": item.job.get("memory"),
            }
            for item in review.items
        ],
    }
