"""`agentc bundle SPEC -o DIR`: a directory that reruns where agentc is not installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentc.cli.arguments import (
    add_locked_argument,
    add_spec_arguments,
    compile_typed,
    show_diagnostics,
)
from agentc.cli.store_argument import add_store_argument

HELP = "write a directory that reruns under `snakemake` where agentc is not installed"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_spec_arguments(parser)
    add_locked_argument(parser)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="must not exist yet"
    )
    parser.add_argument(
        "--with-results", action="store_true", help="also the results that the store has"
    )
    add_store_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0 with the directory written; 1 when the spec has errors; 2 when DIR cannot be written;
    4 when the store is damaged; 5 when it has none of the results asked for."""
    from agentc.backend_api import load_backends
    from agentc.cli.store import shown_size
    from agentc.emit.bundle import BundleError, DamagedResultsError, write_bundle
    from agentc.store.paths import look_into

    compiled = compile_typed(arguments, load_backends())
    show_diagnostics(compiled.diagnostics)
    if compiled.plan is None:
        return 1
    store = look_into(arguments.store) if arguments.with_results else None
    if store is not None and not any(store.is_published(job.object) for job in compiled.plan.jobs):
        print(f"agentc: the store {store.root} has no result of this experiment", file=sys.stderr)
        return 5
    directory: Path = arguments.output
    try:
        bundle = write_bundle(directory, compiled, store)
    except DamagedResultsError as error:
        print(f"agentc: {error}", file=sys.stderr)
        return 4
    except BundleError as error:
        print(f"agentc: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        reason = error.strerror or type(error).__name__
        print(f"agentc: cannot write {directory}: {reason}", file=sys.stderr)
        return 2
    results = f", results of {bundle.results}" if store is not None else ""
    print(
        f"{directory}: {bundle.jobs} jobs{results}, {bundle.files} files, {shown_size(bundle.size)}"
    )
    for name in bundle.absent:
        print(f"not in it, since it lies outside of the spec's folder: {name}")
    print(f"run it with: cd {directory} && snakemake -c4")
    return 0
