"""`agentc run SPEC`: compile, skip what the store has, run the rest, show it, report. What happens
is in run_sequence.py, which is imported when a run starts."""

from __future__ import annotations

import argparse
import io
import sys

from agentc.cli.arguments import add_locked_argument, add_spec_arguments
from agentc.cli.parser import add_jobs_argument, add_store_argument
from agentc.cli.spec_work import RefusedSpecError
from agentc.exit_codes import EXIT_DONE
from agentc.runtime.machine.output_filters import unguarded

HELP = "run what is missing of an experiment, and show its results"

_EPILOG = """\
What is in the store already is not run again, and a run that was cut off continues where it was.
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
    add_jobs_argument(parser)
    parser.add_argument(
        "--profile",
        metavar="NAME|DIR",
        help="where jobs run: the folder or the name of a Snakemake profile, `slurm` for the "
        "bundled one (default: $SNAKEMAKE_PROFILE, else this machine)",
    )
    parser.add_argument(
        "--keep-going", action="store_true", help="after a failure continue with what can still run"
    )
    parser.add_argument(
        "--over-budget", action="store_true", help="run although the estimate exceeds `budget:`"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="run although `agentc plan --preflight` has a problem, such as too few GPUs",
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
    stage, 6 a claim with `gate: true` does not hold, 7 preflight has a problem."""
    from agentc.cli.run_sequence import ExperimentRun

    _print_lines_at_once()
    try:
        run = ExperimentRun.prepare(arguments)
        if arguments.dry_run:
            cost = run.estimate()
            run.show(cost)
            run.require_budget(cost)
            return EXIT_DONE
        cost = run.estimate()
        checked = run.check(cost)
        run.require_budget(cost)
        return run.execute(checked, cost)
    except RefusedSpecError as error:
        # Here, not in main(): to `agentc search` it is the exit code of a trial.
        if str(error):
            print(f"agentc: {error}", file=sys.stderr)
        return error.exit_code


def _print_lines_at_once() -> None:
    """A log or a pipe shows each line when it is written."""
    out = unguarded(sys.stdout)
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(line_buffering=True)
