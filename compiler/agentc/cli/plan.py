"""`agentc plan SPEC`: what a run would do, and what changed since the last one. `agentc graph
SPEC`: its stages and what they read, as text or as a picture."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.cli.arguments import (
    add_format_argument,
    add_locked_argument,
    add_spec_arguments,
    show_diagnostics,
    wants_colour,
)
from agentc.cli.cost import add_place_arguments
from agentc.cli.parser import Command, add_store_argument
from agentc.cli.spec_work import find_spec_work
from agentc.exit_codes import EXIT_USAGE
from agentc.text import terminal_width, wrapped_lines

if TYPE_CHECKING:
    from agentc.cost import Estimate, Summary
    from agentc.graph.stages import StageGraph
    from agentc.kinds.field import Json
    from agentc.plan.review import Review


_PLAN_HELP = "show what a run would do: jobs, what the store has, what changed and why"

_OF_SERVER = ("id", "scope", "replicas", "resources", "clients")

_PLAN_EPILOG = """\
marks:
  +  runs: new                     ~  runs: it changed since the last run
  >  runs: not finished yet        =  the store has it
  ·  is not there, and nothing that must run needs it
Under a changed job stands each setting or input of its own that changed; what only follows from
other jobs names them.
"""


def _configure_plan(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _PLAN_EPILOG
    add_spec_arguments(parser)
    add_locked_argument(parser)
    add_store_argument(parser)
    parser.add_argument(
        "--profile",
        metavar="NAME|DIR",
        help="also what each stage asks for under this Snakemake profile, and who says so"
        " (default: $SNAKEMAKE_PROFILE, as for `agentc run`)",
    )
    add_place_arguments(parser)
    parser.add_argument("--until", metavar="STAGE", help="only this stage and what it needs")
    parser.add_argument(
        "--all", action="store_true", help="list every job, also what is usually folded"
    )
    parser.add_argument(
        "--full", action="store_true", help="settings, inputs, servers and keys of every job"
    )
    add_format_argument(parser)


def _show_plan(arguments: argparse.Namespace) -> int:
    """0 with the plan on standard output; 1 when the spec has errors, 2 for no such profile,
    5 for no such stage."""
    from agentc.backend_api import load_backends
    from agentc.cli.cost import cost_to_run, find_place, show_estimate
    from agentc.cost.render import cost_column
    from agentc.diagnostics import Sink
    from agentc.memory.render import memory_text
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
    estimates, expected = cost_to_run(
        work, typed.compiled, table, find_place(arguments.on, profile, arguments.jobs)
    )
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
            print("  `agentc cost` shows the sources")
        if needs := memory_text((*work.missing, *_shared_servers(work.document))):
            print("\n".join(["", *wrapped_lines(needs.splitlines(), width)]))
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


_GRAPH_HELP = "draw the stages of a spec: what reads what, by round, and what the store has"

_FORMATS = ("text", "svg", "html", "dot", "mermaid")
_ENDINGS = {
    "": "text",
    ".txt": "text",
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
}
_MOST_DRAWN = 400
"""Stages in a picture: more make none that anybody could read."""


def _configure_graph(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = "For example: agentc graph specs/quickstart.yaml -o quickstart.svg"
    add_spec_arguments(parser)
    add_store_argument(parser)
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help="default: what the ending of FILE says, else text; dot is Graphviz's language, mermaid"
        " what GitHub draws in pages",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write")
    parser.add_argument(
        "--all",
        action="store_true",
        help="draw every round and evaluation, also those that repeat each other",
    )


def _graph(arguments: argparse.Namespace) -> int:
    """0; 1 when the spec has errors; 2 when FILE cannot be written or ends like nothing that can
    be drawn, or there is too much for a picture."""
    from agentc.backend_api import load_backends
    from agentc.graph.stages import stage_graph
    from agentc.graph.text import MOST_EDGES
    from agentc.plan.review import review_plan
    from agentc.plan.tree import headline
    from agentc.run.past import plan_before

    form = arguments.format or _form(arguments.output)
    if form is None:
        print(
            f"agentc: a graph cannot be written as `{arguments.output.suffix}`; endings:"
            f" {', '.join(ending for ending in _ENDINGS if ending)}. Graphviz makes the rest of"
            " a .dot file, such as `dot -Tpdf`",
            file=sys.stderr,
        )
        return EXIT_USAGE
    work = find_spec_work(arguments, load_backends()).work
    review = review_plan(work, plan_before(work.layout, work.document))
    graph = stage_graph(review, every=arguments.all, picture=form != "text")
    if form in ("svg", "html", "mermaid") and len(graph.nodes) > _MOST_DRAWN:
        hint = "leave out --all, or use" if arguments.all else "use"
        print(
            f"agentc: {len(graph.nodes)} stages are too many for a picture (at most {_MOST_DRAWN});"
            f" {hint} --format text or dot",
            file=sys.stderr,
        )
        return EXIT_USAGE
    if form == "mermaid" and len(graph.edges) > MOST_EDGES:
        print(
            f"agentc: {len(graph.edges)} arrows are too many for Mermaid (at most {MOST_EDGES});"
            " use --format svg or dot",
            file=sys.stderr,
        )
        return EXIT_USAGE
    text = _written(form, graph, headline(review))
    if arguments.output is None:
        print(text, end="")
        return 0
    try:
        arguments.output.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        print(f"agentc: cannot write {arguments.output}: {reason}", file=sys.stderr)
        return EXIT_USAGE
    print(f"{arguments.output}: {len(graph.nodes)} stages")
    return 0


def _form(output: Path | None) -> str | None:
    """What FILE's ending asks for; None for an ending that stands for something else."""
    return "text" if output is None else _ENDINGS.get(output.suffix.lower())


def _written(form: str, graph: StageGraph, headline: str) -> str:
    from agentc.graph.svg import page_text, svg_text
    from agentc.graph.text import dot_text, graph_text, mermaid_text

    match form:
        case "svg":
            return svg_text(graph, headline)
        case "html":
            return page_text(graph, headline)
        case "dot":
            return dot_text(graph)
        case "mermaid":
            return mermaid_text(graph)
        case _:
            return graph_text(graph, headline)


COMMANDS = {
    "plan": Command(_PLAN_HELP, _configure_plan, _show_plan),
    "graph": Command(_GRAPH_HELP, _configure_graph, _graph),
}
