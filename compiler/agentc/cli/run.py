"""`agentc run SPEC`: compile, skip what the store has, run the rest, show it, report."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import (
    add_locked_argument,
    add_spec_arguments,
    compile_typed,
    same_spec,
    show_diagnostics,
    show_found,
    wants_colour,
)
from agentc.cli.parser import add_store_argument
from agentc.cli.run_steps import RunSteps
from agentc.cli.stopping import show_rounds, with_stopped_rounds
from agentc.exit_codes import EXIT_PREFLIGHT, EXIT_SPEC, EXIT_STORE, EXIT_USAGE
from agentc.plan.work import Work, find_work
from agentc.text import print_wrapped, terminal_width

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation
    from agentc.cost import Estimate, Summary
    from agentc.diagnostics import Diagnostic
    from agentc.placement.device_count import DeviceCount
    from agentc.placement.profile import Profile
    from agentc.run.slurm_queue import SubmitLimit
    from agentc.tracking.choice import ChosenTracker

HELP = "run what is missing of an experiment, and show its results"

_EPILOG = """\
What is in the store already is not run again, and a run that was cut off goes on where it was.
Give secrets as environment variables of this command.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_run_arguments(parser)
    parser.add_argument("--until", metavar="STAGE", help="only this stage and what it needs")
    parser.add_argument(
        "-n",
        "--dry-run",
        action="store_true",
        help="say what would run, as `agentc plan` does, and run nothing",
    )


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """What `agentc search` hands to each run, too."""
    add_spec_arguments(parser)
    add_locked_argument(parser)
    add_store_argument(parser)
    parser.add_argument(
        "-j",
        "--jobs",
        type=positive,
        default=None,
        metavar="N",
        help="cores to use, or jobs in the queue with a cluster profile (default: all cores, or"
        " what the profile says, or 100 jobs)",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME|DIR",
        help="where jobs run: the folder or the name of a Snakemake profile, `slurm` for the one"
        " that ships with agentc (default: $SNAKEMAKE_PROFILE, else this machine)",
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="after a failure go on with what can still run"
    )
    parser.add_argument(
        "--over-budget", action="store_true", help="run although the estimate exceeds `budget:`"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="run although `agentc preflight` has a problem, such as too few GPUs",
    )
    parser.add_argument(
        "--track",
        metavar="NAME[,NAME]",
        help="write curves and results to these trackers too, in place of those of the spec:"
        " trackio, tensorboard, wandb, mlflow; `none`: to none",
    )
    parser.add_argument(
        "--plain", action="store_true", help="timestamped lines instead of the live view"
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 done, 1 errors in the spec, 2 no such profile, 3 a job failed, 4 no usable store, 5 no such
    stage, 6 a claim with `gate: true` is not reproduced, 7 preflight has a problem."""
    from agentc.backend_api import load_backends
    from agentc.cli.cost import WORTH_MEASURING_S, cost_to_run
    from agentc.diagnostics import Sink
    from agentc.passes.lowering.secrets import report_missing
    from agentc.placement.device_count import DeviceCount
    from agentc.placement.profile import find_profile, require_executor
    from agentc.plan.render import plan_document
    from agentc.run.orchestrate import RunOptions
    from agentc.run.snakemake_process import DriverOptions, at_once
    from agentc.runtime.machine.hardware import DevicesError
    from agentc.runtime.machine.output_filters import unguarded
    from agentc.software.requirements import needed_by_plan, report_lacking
    from agentc.store.paths import open_store
    from agentc.tracking.choice import choose_trackers, report_missing_secrets

    out = unguarded(sys.stdout)
    if isinstance(out, io.TextIOWrapper):
        # A log or a pipe shows each line when it is written.
        out.reconfigure(line_buffering=True)
    profile = find_profile(arguments.profile, os.environ)
    if profile is not None and not arguments.dry_run:
        require_executor(profile)
    table = load_backends()
    compiled = compile_typed(arguments, table)
    show_found(compiled, arguments)
    if compiled.plan is None:
        return EXIT_SPEC
    if compiled.unavailable and not arguments.dry_run:
        names = ", ".join(compiled.unavailable)
        print(
            f"agentc: this experiment checks and plans, but cannot run yet: {names} has no server",
            file=sys.stderr,
        )
        return EXIT_SPEC
    if not arguments.dry_run:
        from agentc.cli.pinning import compile_pinned

        pinned = compile_pinned(compiled, arguments, table)
        if pinned is None:
            return EXIT_SPEC
        compiled = pinned
    try:
        layout = open_store(arguments.store)
    except OSError as error:
        print(f"agentc: no usable store: {error}", file=sys.stderr)
        return EXIT_STORE
    compiled, rounds = with_stopped_rounds(compiled, arguments, table, layout)
    assert compiled.plan is not None
    show_rounds(rounds)
    work = find_work(plan_document(compiled.plan), layout, arguments.until)
    queued, cores = profile is not None and profile.queued, at_once(profile, arguments.jobs)
    trackers: tuple[ChosenTracker, ...] = ()
    counted = DeviceCount()
    if not arguments.dry_run:
        # What would end the run is looked for before anything is measured, built or downloaded.
        wanting = Sink()
        written = () if compiled.module is None else compiled.module.track
        trackers = choose_trackers(written, arguments.track, wanting, Path(arguments.spec).parent)
        report_missing_secrets(trackers, os.environ, wanting)
        stages = {str(job["stage"]) for job in work.missing}
        report_missing(compiled.secrets, stages, os.environ, wanting)
        needed = needed_by_plan(compiled.plan, {str(job["id"]) for job in work.missing})
        report_lacking(needed, layout, wanting)
        if wanting.has_errors:
            show_diagnostics(wanting.sorted())
            return EXIT_SPEC
        try:
            counted = _count_devices(work, profile)
        except DevicesError as error:
            print(f"agentc: {error}", file=sys.stderr)
            return EXIT_USAGE
        if work.missing and not arguments.force:
            cost = cost_to_run(work, compiled, table, cores=cores, queued=queued)
            if _would_fail(work, compiled, table, profile, cost, arguments):
                return EXIT_PREFLIGHT
    estimates, expected = cost_to_run(
        work, compiled, table, cores=cores, queued=queued, measure_from=WORTH_MEASURING_S
    )
    budget = None if compiled.module is None else compiled.module.budget
    excess: tuple[Diagnostic, ...] = ()
    if budget is not None and expected is not None:
        from agentc.cost.render import over_budget

        excess = over_budget(budget, expected, estimates)
    if arguments.dry_run:
        _tell(work, estimates, expected)
    if excess and not arguments.over_budget:
        show_diagnostics(excess)
        return EXIT_SPEC
    if arguments.dry_run:
        return 0
    if counted.note:
        print(counted.note)
    options = RunOptions(
        driver=DriverOptions(
            jobs=arguments.jobs,
            profile=profile,
            keep_going=arguments.keep_going,
            gpus=counted.gpus,
            cores=counted.cores,
            limit=_submit_limit(work, profile),
        ),
        plain=arguments.plain,
        colour=wants_colour(sys.stdout),
        spec_directory=Path(arguments.spec).parent,
        trackers=trackers,
        explain=partial(_why_waiting, profile),
    )
    steps = RunSteps(
        arguments=arguments,
        table=table,
        layout=layout,
        options=options,
        cores=cores,
        queued=queued,
    )
    return steps.run(compiled, rounds, work, (estimates, expected))


def _why_waiting(profile: Profile | None, work: Work, unit: str) -> list[str]:
    """Why SLURM does not start a job, in preflight's words."""
    from agentc.preflight.queue import why_waiting

    return [] if profile is None else why_waiting(profile, work, unit)


def _would_fail(
    work: Work,
    compiled: Compilation,
    table: BackendTable,
    profile: Profile | None,
    cost: tuple[Mapping[str, Estimate], Summary | None],
    arguments: argparse.Namespace,
) -> bool:
    """Whether the offline half of preflight has a problem, which is printed."""
    from agentc.placement import read_requests
    from agentc.preflight.every_check import every_check
    from agentc.preflight.finding import problems_text

    requests = None if profile is None else read_requests(profile)
    found = every_check(work, compiled, table, requests, cost, online=False)
    if not any(each.verdict == "problem" for each in found):
        return False
    print(problems_text(found, same_spec("preflight", arguments)), file=sys.stderr)
    return True


def _submit_limit(work: Work, profile: Profile | None) -> SubmitLimit | None:
    """The smallest limit of SLURM's on the jobs that the run has in the queue."""
    from agentc.placement import read_requests, settle_plan
    from agentc.placement.profile import SLURM
    from agentc.preflight.queue import limit_of_run

    if profile is None or profile.executor != SLURM or not work.missing:
        return None
    wanted = [str(job["id"]) for job in work.missing]
    return limit_of_run(settle_plan(work.document, read_requests(profile), wanted))


def _count_devices(work: Work, profile: Profile | None) -> DeviceCount:
    """What there is of GPUs for the jobs that have to run. Raises DevicesError, ProfileError."""
    from agentc.placement import read_requests, settle_plan
    from agentc.placement.device_count import DeviceCount, count_devices

    if not work.missing:
        return DeviceCount()
    requests = None if profile is None else read_requests(profile)
    settled = settle_plan(work.document, requests, [str(job["id"]) for job in work.missing])
    queued = profile is not None and profile.queued
    return count_devices(settled, os.environ, queued=queued)[0]


def _tell(work: Work, estimates: Mapping[str, Estimate], expected: Summary | None) -> None:
    from agentc.cost.render import cost_column, summary_sentence
    from agentc.plan.review import review_plan
    from agentc.plan.tree import plan_text
    from agentc.run.past import plan_before

    before = plan_before(work.layout, work.document)
    width = terminal_width(sys.stdout)
    print(plan_text(review_plan(work, before), costs=cost_column(estimates), width=width), end="")
    if expected is not None:
        print_wrapped(
            f"estimate: {summary_sentence(expected)}; `agentc cost` says what it rests on"
        )


def positive(text: str) -> int:
    """A count of the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected 1 or more")
    return number
