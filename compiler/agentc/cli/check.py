"""`agentc check SPEC ...`: everything that can be known to be wrong before a job starts.

Several specs and folders are `check_several.py`, which one spec does not wait for.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from agentc.cli.arguments import (
    add_format_argument,
    add_locked_argument,
    add_spec_arguments,
    compile_typed,
    show_diagnostics,
)
from agentc.exit_codes import EXIT_SPEC, EXIT_USAGE

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation

HELP = "say whether specs are right; every error at once, nothing is run"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_spec_arguments(parser, several=True)
    parser.add_argument(
        "--only-specs",
        action="store_true",
        help="pass over files that are no specs (no key `agentc`, or a template), as folders do",
    )
    add_locked_argument(parser)
    add_format_argument(
        parser,
        "how errors are written; json and sarif (2.1.0) go to standard output",
        choices=("text", "json", "sarif"),
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument(
        "-w",
        "--watch",
        action="store_true",
        help="check again whenever a file that the spec reads changes, until Ctrl-C; one spec only",
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 when every spec is right (there may be warnings), 1 when one has errors, 2 for a
    wrong command line. With --watch it goes on until it is interrupted."""
    from agentc.backend_api import load_backends

    typed: list[str] = arguments.specs
    several = len(typed) > 1 or arguments.only_specs or os.path.isdir(typed[0])  # noqa: PTH112
    if arguments.watch and several:
        print("agentc: --watch takes one spec, and no folder or --only-specs", file=sys.stderr)
        return EXIT_USAGE
    table = load_backends()
    if arguments.watch and arguments.format == "sarif":
        print("agentc: --watch prints text or json; sarif is for one check", file=sys.stderr)
        return EXIT_USAGE
    if several:
        from agentc.cli.check_several import check_several

        return check_several(arguments, table)
    arguments.spec = Path(typed[0])
    if arguments.watch:
        _watch(arguments, table)
    return EXIT_SPEC if _check(arguments, table).has_errors else 0


def _check(arguments: argparse.Namespace, table: BackendTable) -> Compilation:

    spec: Path = arguments.spec
    compiled = compile_typed(arguments, table, every_scale=True)
    # A watcher's reader wants to know where one answer ends: one line of JSON for each.
    form = "jsonl" if arguments.watch and arguments.format == "json" else arguments.format
    show_diagnostics(compiled.diagnostics, form, about=spec)
    if not compiled.has_errors and arguments.format == "text" and not arguments.quiet:
        stages = 0 if compiled.module is None else len(compiled.module.stages)
        jobs = 0 if compiled.plan is None else len(compiled.plan.jobs)
        print(f"{spec}: no errors; {stages} stages, {jobs} jobs")
        for use in compiled.secrets:
            print(f"a run needs the secret {use.described()}")
    return compiled


def _watch(arguments: argparse.Namespace, table: BackendTable) -> NoReturn:
    from agentc.cli.watch import watch

    spec: Path = arguments.spec

    def check() -> tuple[Path, ...]:
        compiled = _check(arguments, table)
        # What is missing may be made: an error can be about a file that is not there yet.
        beside = (spec.parent,) if compiled.has_errors else ()
        return (*compiled.files, *beside)

    terminal = sys.stdout.isatty() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    watch(spec, check, clear=terminal and arguments.format == "text")
