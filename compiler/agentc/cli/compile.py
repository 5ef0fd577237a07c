"""`agentc compile SPEC -o DIR`: a directory that plain Snakemake can run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentc.cli.arguments import (
    add_locked_argument,
    add_spec_arguments,
    compile_typed,
    show_found,
)
from agentc.cli.stopping import say_all_rounds
from agentc.exit_codes import EXIT_SPEC, EXIT_USAGE

HELP = "write a directory that `snakemake` alone can run"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_spec_arguments(parser)
    add_locked_argument(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="where to write; files of an earlier compilation are replaced, results stay",
    )
    parser.add_argument("--until", metavar="STAGE", help="only this stage and what it needs")


def execute(arguments: argparse.Namespace) -> int:
    """0 with the directory written; 1 when the spec has errors; 2 when DIR cannot be written; 5 for
    no such stage."""
    from agentc.backend_api import load_backends
    from agentc.emit import compile_to
    from agentc.plan.work import plan_until

    compiled = compile_typed(arguments, load_backends(), moving=False)
    show_found(compiled, arguments)
    if compiled.plan is None:
        return EXIT_SPEC
    directory: Path = arguments.output
    plan = plan_until(compiled.plan, arguments.until)
    try:
        compile_to(directory, plan, compiled.spec.source.text, arguments.spec.parent)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        print(f"agentc: cannot write {directory}: {reason}", file=sys.stderr)
        return EXIT_USAGE
    only = "" if arguments.until is None else f"; `{arguments.until}` and what it needs will run"
    print(f"{directory}: {len(plan.jobs)} jobs{only}")
    say_all_rounds(compiled)
    print(f"run it with: cd {directory} && snakemake -c2")
    return 0
