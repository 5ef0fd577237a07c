"""`agentc run SPEC`: compile, skip what the store has, run the rest, show it, report."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from agentc.cli.arguments import (
    add_locked_argument,
    add_spec_arguments,
    show_diagnostics,
    wants_colour,
)
from agentc.plan.work import UnknownStageError, Work, find_work

HELP = "run what is missing of an experiment, and show its results"

_EPILOG = """\
What is in the store already is not run again, and a run that was cut off goes on where it was.
Give secrets as environment variables of this command.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_spec_arguments(parser)
    add_locked_argument(parser)
    parser.add_argument("--store", metavar="DIR", help="default: $AGENTC_STORE, else .agentc/store")
    parser.add_argument(
        "-j",
        "--jobs",
        type=_positive,
        default=None,
        metavar="N",
        help="cores to use, or jobs in the queue with a cluster profile (default: all cores; 100)",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME|DIR",
        help="where jobs run: `slurm`, a Snakemake profile's folder, or its name",
    )
    parser.add_argument("--until", metavar="STAGE", help="only this stage and what it needs")
    parser.add_argument(
        "--keep-going", action="store_true", help="after a failure go on with what can still run"
    )
    parser.add_argument(
        "-n",
        "--dry-run",
        action="store_true",
        help="say what would run, as `agentc plan` does, and run nothing",
    )
    parser.add_argument(
        "--plain", action="store_true", help="timestamped lines instead of the live view"
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 done, 1 errors in the spec, 3 a job failed, 4 no usable store, 5 no such stage, 6 a claim
    with `gate: true` is not reproduced."""
    from agentc.backend_api import load_backends
    from agentc.compilation import compile_spec
    from agentc.diagnostics.suggest import did_you_mean
    from agentc.plan.render import plan_document, render_plan
    from agentc.run.plan_folder import claim_plan_folder
    from agentc.store.paths import open_store

    compiled = compile_spec(
        arguments.spec, arguments.params, load_backends(), locked=arguments.locked
    )
    show_diagnostics(compiled.diagnostics)
    if compiled.plan is None:
        return 1
    if compiled.unavailable and not arguments.dry_run:
        names = ", ".join(compiled.unavailable)
        print(
            f"agentc: this experiment checks and plans, but cannot run yet: {names} has no server",
            file=sys.stderr,
        )
        return 1
    try:
        layout = open_store(arguments.store)
    except OSError as error:
        print(f"agentc: no usable store: {error}", file=sys.stderr)
        return 4
    document = plan_document(compiled.plan)
    try:
        work = find_work(document, layout, arguments.until)
    except UnknownStageError as error:
        hint = did_you_mean(error.name, error.known) or f"stages: {', '.join(error.known)}"
        print(f"agentc: no stage `{error.name}`; {hint}", file=sys.stderr)
        return 5
    if arguments.dry_run:
        _tell(work)
        return 0
    from agentc.emit import compile_to
    from agentc.run.driver import DriverOptions
    from agentc.run.orchestrate import RunOptions, run_plan

    spec_text = Path(arguments.spec).read_text(encoding="utf-8")
    options = RunOptions(
        driver=DriverOptions(
            jobs=arguments.jobs or (100 if arguments.profile else os.cpu_count() or 1),
            profile=arguments.profile,
            keep_going=arguments.keep_going,
        ),
        plain=arguments.plain,
        colour=wants_colour(sys.stdout),
    )
    with claim_plan_folder(layout, compiled.plan.name, render_plan(compiled.plan)) as directory:
        compile_to(directory, compiled.plan, spec_text, Path(arguments.spec).parent)
        return run_plan(work, directory, options)


def _tell(work: Work) -> None:
    from agentc.plan.review import review_plan
    from agentc.plan.tree import plan_text
    from agentc.run.past import read_past
    from agentc.store.paths import RunFolder

    before = read_past(RunFolder.of(work.layout, str(work.document["name"])).last_plan)
    print(plan_text(review_plan(work, before)), end="")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected 1 or more")
    return number
