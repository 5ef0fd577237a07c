"""`agentc plan --cost SPEC`: what a run would cost, by stage and in all, and the basis of the
numbers; the same estimate for `plan`, its `--preflight`, and `run`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.parser import add_jobs_argument
from agentc.cli.spec_work import find_spec_work
from agentc.exit_codes import EXIT_NOT_FOUND
from agentc.text import print_wrapped, terminal_width, wrapped_lines

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation
    from agentc.cost import Estimate, Summary
    from agentc.cost.place import Place
    from agentc.placement.profile import Profile
    from agentc.plan.work import Work
    from agentc.runtime.store.layout import StoreLayout


OPTIONS = ("learn_from",)
"""Destinations of what `agentc plan` takes with --cost only."""


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    """What OPTIONS names."""
    parser.add_argument(
        "--learn-from",
        action="append",
        default=[],
        metavar="DIR",
        help="another store whose finished jobs count as well; may be given several times",
    )


def show_cost(arguments: argparse.Namespace) -> int:
    """The exit code: 0 with the table on standard output; 1 when the spec has errors; 2 for unknown
    hardware or profile; 5 when there is no such stage, or no store to learn from."""
    from agentc.backend_api import load_backends
    from agentc.cost import cost_table
    from agentc.cost.render import budget_lines, estimate_document
    from agentc.memory.render import memory_label, memory_share, on_card
    from agentc.placement.profile import find_profile
    from agentc.runtime.store.layout import StoreLayout
    from agentc.searching.stopping import round_lines

    for folder in arguments.learn_from:
        if not (Path(folder) / "objects").is_dir():
            print(f"agentc: there is no store at {folder}", file=sys.stderr)
            return EXIT_NOT_FOUND
    profile = find_profile(arguments.profile, os.environ)
    place = find_place(arguments.on, profile, arguments.jobs)
    table = load_backends()
    typed = find_spec_work(arguments, table, until=arguments.until, form=arguments.format)
    compiled, rounds, work = typed.compiled, typed.rounds, typed.work
    estimates, summary = cost_of(
        work,
        compiled,
        table,
        place=place,
        others=[StoreLayout(folder) for folder in arguments.learn_from],
    )
    if arguments.format == "json":
        found = estimate_document(estimates, summary)
        if rounds:
            found["stopping"] = [each.document() for each in rounds]
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return 0
    placed = (on_card(job, place.model) for job in work.document["jobs"])
    fullest_first = sorted(placed, key=memory_share, reverse=True)
    memory = {str(job["id"]): memory_label(job) for job in fullest_first}
    width = terminal_width(sys.stdout)
    text = cost_table(estimates, summary, everything=arguments.all, memory=memory, width=width)
    print(text, end="")
    budget = None if compiled.module is None else compiled.module.budget
    lines = [*round_lines(rounds), *(() if budget is None else budget_lines(budget, summary))]
    for line in wrapped_lines(lines, width):
        print(line)
    return 0


def add_place_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that say where an estimate is for."""
    add_jobs_argument(parser)
    parser.add_argument(
        "--on",
        metavar="WHERE",
        help="what the estimate is for: `here`, `slurm`, or GPUs such as 8xa100-80gb, 4xh100 or"
        " a100 (default: here, or the profile's queue)",
    )


def find_place(on: str | None, profile: Profile | None, jobs: int | None) -> Place:
    """Where an estimate is for: what `--on` says, else the queue of a profile, else this machine.
    Raises PlaceError, ProfileError."""
    from agentc.cost.place import HERE, Place, place_of_hardware, slowdown
    from agentc.placement.profile import SLURM, find_profile
    from agentc.run.snakemake_process import JOBS_IN_QUEUE, at_once

    if on == SLURM and (profile is None or profile.executor != SLURM):
        profile = find_profile(SLURM, os.environ)
    if on not in (None, HERE, SLURM):
        return place_of_hardware(on, jobs)
    if on != HERE and profile is not None and profile.queued:
        cores = at_once(profile, jobs) or JOBS_IN_QUEUE
        return Place(cores=cores, queued=True, name=profile.executor)
    there = os.cpu_count() or 1
    cores = jobs or (None if profile is None else at_once(profile, jobs)) or there
    return Place(cores=cores, gpus=_gpus_here(), slowdown=slowdown(there, cores))


def _gpus_here() -> int | None:
    """GPUs of this machine; None where there are none, so that an estimate of work for GPUs is one
    for as many as it asks for."""
    from agentc.runtime.machine.hardware import DevicesError, machine_devices, may_have_gpus

    try:
        return len(machine_devices(os.environ)) or None if may_have_gpus(os.environ) else None
    except DevicesError:
        return None


def show_estimate(summary: Summary) -> None:
    """Print the estimate of the whole in short lines."""
    from agentc.cost.render import summary_lines

    for number, line in enumerate(summary_lines(summary)):
        print_wrapped(f"  {line}" if number else f"estimate: {line}")


def cost_of(
    work: Work,
    compiled: Compilation,
    table: BackendTable,
    *,
    place: Place | None = None,
    others: Sequence[StoreLayout] = (),
) -> tuple[dict[str, Estimate], Summary]:
    """Estimates by job id, and the totals of what has to run at a place (default: this machine).
    The GPU type is the place's, else that of `placement.gpu`, else that of the spec's budget."""
    from agentc.cost import DEFAULT_GPU, estimate_plan, summarise

    place = place or find_place(None, None, None)
    budget = None if compiled.module is None else compiled.module.budget
    estimates = estimate_plan(
        work.document,
        work.layout,
        table=table,
        gpu=DEFAULT_GPU if budget is None else budget.gpu,
        place=place,
        others=others,
        states=work.states,
    )
    return estimates, summarise(work.document, estimates, place)


def cost_to_run(
    work: Work, compiled: Compilation, table: BackendTable, place: Place | None = None
) -> tuple[dict[str, Estimate], Summary | None]:
    """The same, but nothing when nothing has to run: a finished experiment is passed over in a
    moment."""
    return cost_of(work, compiled, table, place=place) if work.missing else ({}, None)
