"""`agentc bundle SPEC -o DIR`: a directory that reruns where agentc is not installed; with `--bare`
one that `snakemake` runs where it is; with `--check DIR`, what of a bundle differs from what agentc
makes of the spec in it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentc import __version__
from agentc.cli.arguments import (
    add_locked_argument,
    add_spec_arguments,
    compile_typed,
    print_diagnostics,
    show_diagnostics,
)
from agentc.cli.parser import add_store_argument
from agentc.cli.spec_work import report_all_rounds
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_SPEC, EXIT_USAGE
from agentc.text import format_size

HELP = "write a directory that reruns under `snakemake` where agentc is not installed"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_spec_arguments(parser, optional=True)
    add_locked_argument(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="must not exist yet; with --bare files of an earlier one are replaced, results stay",
    )
    parser.add_argument(
        "--bare",
        action="store_true",
        help="only what `snakemake` needs beside an installed agentc: no packages, no results",
    )
    parser.add_argument(
        "--until", metavar="STAGE", help="with --bare: only this stage and what it needs"
    )
    parser.add_argument(
        "--check",
        type=Path,
        metavar="DIR",
        help="instead: compile the spec inside of a bundle again and show what differs; nothing "
        "of the bundle is executed",
    )
    parser.add_argument(
        "--with-results", action="store_true", help="also the results that the store has"
    )
    parser.add_argument(
        "--with-hidden",
        action="store_true",
        help="of results also hidden texts of tasks, which anyone who has the bundle can read",
    )
    add_store_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0 with the directory written; 1 when the spec has errors; 2 when DIR cannot be written
    or options do not go together; 4 when the store is damaged; 5 when it has none of the results
    asked for, or there is no such stage. With --check: 0 when the bundle is what its spec gives, 1
    when it is not, 2 when DIR is no bundle."""
    if arguments.check is not None:
        return _check(arguments)
    if arguments.spec is None or arguments.output is None:
        print("agentc: give SPEC and -o DIR to write a bundle, or --check DIR", file=sys.stderr)
        return EXIT_USAGE
    if arguments.bare and (arguments.with_results or arguments.with_hidden or arguments.store):
        arguments.parser.error("--bare writes no results, and reads no store")
    if arguments.until is not None and not arguments.bare:
        arguments.parser.error("--until goes with --bare: a bundle has the whole experiment")
    if arguments.bare:
        return _write_bare(arguments)
    if arguments.with_hidden and not arguments.with_results:
        print("agentc: hidden texts are results: --with-hidden goes with --with-results",
              file=sys.stderr)  # fmt: skip
        return EXIT_USAGE
    from agentc.backend_api import load_backends
    from agentc.emit.bundle import write_bundle
    from agentc.store.paths import readable_store

    compiled = compile_typed(arguments, load_backends(), moving=False)
    print_diagnostics(compiled, arguments)
    if compiled.plan is None:
        return EXIT_SPEC
    store = readable_store(arguments.store) if arguments.with_results else None
    if store is not None and not any(store.is_published(job.object) for job in compiled.plan.jobs):
        print(f"agentc: the store {store.root} has no result of this experiment", file=sys.stderr)
        return EXIT_NOT_FOUND
    directory: Path = arguments.output
    try:
        bundle = write_bundle(directory, compiled, store, hidden=arguments.with_hidden)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        print(f"agentc: cannot write {directory}: {reason}", file=sys.stderr)
        return EXIT_USAGE
    results = f", results of {bundle.results}" if store is not None else ""
    print(
        f"{directory}: {bundle.jobs} jobs{results}, {bundle.files} files, "
        f"{format_size(bundle.size)}"
    )
    report_all_rounds(compiled)
    for name in bundle.absent:
        print(f"not in it, since it lies outside of the spec's folder: {name}")
    print(f"run it with: cd {directory} && snakemake -c4")
    return 0


def _write_bare(arguments: argparse.Namespace) -> int:
    """The exit code of a directory without packages."""
    from agentc.backend_api import load_backends
    from agentc.emit import compile_to
    from agentc.plan.work import plan_until

    compiled = compile_typed(arguments, load_backends(), moving=False)
    print_diagnostics(compiled, arguments)
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
    report_all_rounds(compiled)
    print(f"run it with: cd {directory} && snakemake -c2")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from agentc.backend_api import load_backends
    from agentc.emit.bundle import BundleError
    from agentc.emit.bundle_check import check_bundle
    from agentc.source.files import allowed_paths
    from agentc.source.text_checks import strip_forbidden

    directory: Path = arguments.check
    others = (arguments.spec, arguments.output, arguments.until)
    if arguments.bare or arguments.params or any(each is not None for each in others):
        print("agentc: --check takes only the bundle: its plan has the params", file=sys.stderr)
        return EXIT_USAGE
    try:
        checked = check_bundle(directory, load_backends(), allowed_paths(arguments.allow_paths))
    except BundleError as error:
        print(f"agentc: {strip_forbidden(str(error))}", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        reason = error.strerror or type(error).__name__
        print(f"agentc: cannot read {directory}: {reason}", file=sys.stderr)
        return EXIT_USAGE
    show_diagnostics(checked.compiled.diagnostics)
    for found in checked.differences:
        detail = f" ({found.detail})" if found.detail else ""
        print(strip_forbidden(f"{found.kind}: {found.name}{detail}"))
    plan = checked.compiled.plan
    if plan is None:
        print("agentc: the spec inside does not compile here: nothing could be compared",
              file=sys.stderr)  # fmt: skip
        return EXIT_SPEC
    if checked.differences:
        print(
            f"{directory} is not what agentc {__version__} makes of {plan.spec_file}: whatever "
            "differs is code of its sender. (A bundle of another release differs in packages/.)"
        )
        return 1
    given = ", ".join(f"{name} = {value}" for name, value in plan.params.items()) or "none"
    print(f"{directory}: {checked.files} files, as agentc {__version__} makes them of "
          f"{plan.spec_file} (params: {given})")  # fmt: skip
    if checked.results:
        print(f"{checked.results} of them are results, compared only with their sums")
    return 0
