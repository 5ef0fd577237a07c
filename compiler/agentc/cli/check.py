"""`agentc check SPEC`: everything that can be known to be wrong before a job starts."""

from __future__ import annotations

import argparse

from agentc.cli.arguments import add_spec_arguments, show_diagnostics

HELP = "say whether a spec is right; every error at once, nothing is run"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_spec_arguments(parser)
    parser.add_argument(
        "--format",
        choices=("text", "json", "sarif"),
        default="text",
        help="how errors are written; json and sarif (2.1.0) go to standard output",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


def execute(arguments: argparse.Namespace) -> int:
    """0 when the spec is right (there may be warnings), 1 when it has errors."""
    from agentc.backend_api import load_backends
    from agentc.compilation import compile_spec

    compiled = compile_spec(arguments.spec, arguments.params, load_backends())
    diagnostics = compiled.diagnostics
    show_diagnostics(diagnostics, arguments.format, about=arguments.spec)
    if any(found.severity == "error" for found in diagnostics):
        return 1
    if arguments.format == "text" and not arguments.quiet:
        stages = 0 if compiled.module is None else len(compiled.module.stages)
        jobs = 0 if compiled.plan is None else len(compiled.plan.jobs)
        print(f"{arguments.spec}: no errors; {stages} stages, {jobs} jobs")
    return 0
