"""`agentc cost SPEC`: what a run would cost, by stage and in all, and the basis of the numbers; the
same estimate for `plan`, `preflight` and `run`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import (
    add_format_argument,
    add_spec_arguments,
)
from agentc.cli.parser import add_store_argument
from agentc.cli.spec_work import find_spec_work
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_USAGE
from agentc.text import terminal_width, wrapped_lines

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation
    from agentc.cost import Estimate, Summary
    from agentc.plan.work import Work
    from agentc.runtime.store.layout import StoreLayout


HELP = "estimate time, GPU-hours, tokens and disk of a run, with bands"

_EPILOG = """\
`based on` says where a stage's time comes from: `prior`, stated formulas and constants
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
    from agentc.cost import GPUS, cost_table
    from agentc.cost.render import budget_lines, estimate_document
    from agentc.diagnostics.suggest import did_you_mean
    from agentc.memory.render import memory_label, memory_share
    from agentc.placement.profile import find_profile
    from agentc.run.snakemake_process import at_once
    from agentc.runtime.store.layout import StoreLayout
    from agentc.searching.stopping import round_lines

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
    typed = find_spec_work(arguments, table, until=arguments.until, form=arguments.format)
    compiled, rounds, work = typed.compiled, typed.rounds, typed.work
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


WORTH_MEASURING_S = 180.0
"""Expected time of a run from which seconds are spent to make its estimate a better one."""
_WORTH_TRYING_S = 15.0
"""Expected time from which it is tried how much of this machine is free, which takes a second."""

_SLOWER = 1.1
"""From so many times the time of a run alone others are worth a word."""


def cost_of(
    work: Work,
    compiled: Compilation,
    table: BackendTable,
    *,
    cores: int | None = None,
    queued: bool = False,
    gpu: str | None = None,
    others: Sequence[StoreLayout] = (),
    measure_from: float | None = None,
) -> tuple[dict[str, Estimate], Summary]:
    """Estimates by job id, and the totals of what has to run on so many cores (default: those of
    this machine), or with so many jobs in a queue. The GPU type is the one given, else that of
    `placement.gpu`, else of the spec's budget. With `measure_from`, for a run that takes a while
    here, how much of the machine is free counts; and where it is expected to take so many seconds,
    what is not known yet of this machine and of the plan's environments is measured first."""
    from agentc.cost import DEFAULT_GPU, estimate_plan, summarise
    from agentc.cost.machine_state import (
        environments_sounded,
        machine_measured,
        share_of_cores,
        slowed,
        widened,
    )

    budget = None if compiled.module is None else compiled.module.budget
    here = cores or os.cpu_count() or 1

    def estimated(report: Callable[[str], None] | None) -> dict[str, Estimate]:
        document, store = work.document, work.layout
        return estimate_plan(
            document,
            store,
            table=table,
            gpu=gpu or (DEFAULT_GPU if budget is None else budget.gpu),
            cards=gpu is None,
            others=others,
            states=work.states,
            calibration=None if queued else machine_measured(document, store, report),
            sounded=environments_sounded(document, table, store, report),
        )

    estimates = estimated(None)
    summary = summarise(work.document, estimates, here, queued=queued)
    if measure_from is None or queued or summary.wall.median < _WORTH_TRYING_S:
        return estimates, summary
    if summary.wall.median >= measure_from:
        estimates = estimated(_report_line)
        summary = summarise(work.document, estimates, here)
    share = share_of_cores(min(here, os.cpu_count() or 1))
    if share == 1.0:
        return estimates, summary
    estimates = slowed(estimates, share)
    slower = summarise(work.document, estimates, here)
    if slower.wall.median < _SLOWER * summary.wall.median:
        return estimates, summary  # it rests on finished jobs, not on what is free now
    wall, jobs = widened(slower.wall, share), widened(slower.work, share)
    return estimates, replace(slower, wall=wall, work=jobs, share=share, alone=summary.wall.median)


def not_measured(work: Work, summary: Summary) -> str:
    """What `cost` and `run` would look at first and a plan, which computes nothing, does not; ""
    where they would not either."""
    from agentc.cost.machine_state import machine_unknown

    if summary.wall.median < _WORTH_TRYING_S:
        return ""
    if machine_unknown(work.document, work.layout):
        return "this machine was not measured"
    return "how busy this machine is does not count"


def _report_line(line: str) -> None:
    print(f"agentc: {line}", file=sys.stderr, flush=True)


def cost_to_run(
    work: Work,
    compiled: Compilation,
    table: BackendTable,
    *,
    cores: int | None = None,
    queued: bool = False,
    measure_from: float | None = None,
) -> tuple[dict[str, Estimate], Summary | None]:
    """The same, but nothing when nothing has to run: a finished experiment is passed over in a
    moment."""
    if not work.missing:
        return {}, None
    return cost_of(work, compiled, table, cores=cores, queued=queued, measure_from=measure_from)
