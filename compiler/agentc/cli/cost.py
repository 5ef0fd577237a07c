"""`agentc cost SPEC`: what a run would cost, by stage and in all, and what the numbers rest on."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from agentc.cli.arguments import (
    add_format_argument,
    add_spec_arguments,
    compile_typed,
    show_diagnostics,
    show_found,
)
from agentc.cli.stopping import with_stopped_rounds
from agentc.cli.store_argument import add_store_argument
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_SPEC, EXIT_USAGE
from agentc.text import terminal_width, wrapped_lines

HELP = "estimate time, GPU-hours, tokens and disk of a run, with bands"

_EPILOG = """\
`rests on` says where a stage's time comes from: `prior`, stated formulas and constants
(docs/cost.md); `3 like jobs`, the prior corrected by finished jobs of the store; `its own run`,
the same job's earlier time. Bands reach from the 10th to the 90th percentile.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_spec_arguments(parser)
    add_store_argument(parser)
    parser.add_argument(
        "-j",
        "--jobs",
        type=int,
        metavar="N",
        help="cores to use at once (default: all), or jobs in the queue of a cluster's profile",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME|DIR",
        help="as a run with this Snakemake profile: on a cluster, so many jobs at once as it says",
    )
    parser.add_argument(
        "--gpu",
        metavar="TYPE",
        help="the type of GPU that stages get (default: that of `budget:`, or a100)",
    )
    parser.add_argument(
        "--learn-from",
        action="append",
        default=[],
        metavar="DIR",
        help="another store whose finished jobs count as well; may be given several times",
    )
    parser.add_argument("--until", metavar="STAGE", help="only this stage and what it needs")
    parser.add_argument(
        "--all", action="store_true", help="stages in the store too, each round and cell"
    )
    add_format_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0 with the table on standard output; 1 when the spec has errors; 2 for an unknown GPU or
    profile; 5 when there is no such stage, or no store to learn from."""
    import sys

    from agentc.backend_api import load_backends
    from agentc.cli.costing import cost_of
    from agentc.cost import GPUS, cost_table
    from agentc.cost.render import budget_lines, estimate_document
    from agentc.diagnostics.suggest import did_you_mean
    from agentc.memory.render import memory_label, memory_share
    from agentc.placement.profile import find_profile
    from agentc.plan.render import plan_document
    from agentc.plan.work import find_work
    from agentc.run.driver import at_once
    from agentc.runtime.store.layout import StoreLayout
    from agentc.searching.stopping import round_lines
    from agentc.store.paths import readable_store

    if arguments.gpu is not None and arguments.gpu not in GPUS:
        hint = did_you_mean(arguments.gpu, GPUS) or f"known: {', '.join(GPUS)}"
        print(f"agentc: no GPU type `{arguments.gpu}`; {hint}", file=sys.stderr)
        return EXIT_USAGE
    if arguments.jobs is not None and arguments.jobs < 1:
        print("agentc: -j takes 1 or more", file=sys.stderr)
        return EXIT_USAGE
    for folder in arguments.learn_from:
        if not (Path(folder) / "objects").is_dir():
            print(f"agentc: there is no store at {folder}", file=sys.stderr)
            return EXIT_NOT_FOUND
    profile = find_profile(arguments.profile, os.environ)
    queued = profile is not None and profile.queued
    table = load_backends()
    compiled = compile_typed(arguments, table)
    if compiled.plan is None:
        show_diagnostics(compiled.diagnostics, arguments.format)
        return EXIT_SPEC
    show_found(compiled, arguments)
    layout = readable_store(arguments.store)
    compiled, rounds = with_stopped_rounds(compiled, arguments, table, layout)
    assert compiled.plan is not None
    work = find_work(plan_document(compiled.plan), layout, arguments.until)
    estimates, summary = cost_of(
        work,
        compiled,
        table,
        cores=at_once(profile, arguments.jobs),
        queued=queued,
        gpu=arguments.gpu,
        others=[StoreLayout(folder) for folder in arguments.learn_from],
        measure_from=0.0,  # who asks for an estimate wants a good one
    )
    if arguments.format == "json":
        found = estimate_document(estimates, summary)
        if rounds:
            found["stopping"] = [each.document() for each in rounds]
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    fullest_first = sorted(work.document["jobs"], key=memory_share, reverse=True)
    memory = {str(job["id"]): memory_label(job) for job in fullest_first}
    width = terminal_width(sys.stdout)
    text = cost_table(
        estimates, summary, everything=arguments.all, memory=memory, queued=queued, width=width
    )
    print(text, end="")
    budget = None if compiled.module is None else compiled.module.budget
    lines = [*round_lines(rounds), *(() if budget is None else budget_lines(budget, summary))]
    for line in wrapped_lines(lines, width):
        print(line)
    return 0
