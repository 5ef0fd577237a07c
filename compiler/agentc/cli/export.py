"""`agentc dev export FORMAT NAME -o DIR`: an environment as a package for OpenEnv or verifiers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentc.cli.serve import add_entry_arguments, entry_of, wrong_entry
from agentc.exit_codes import EXIT_FAILED, EXIT_USAGE

HELP = "write an environment as a package in an external format: openenv, verifiers"
_FORMATS = {
    "openenv": "a package of OpenEnv's: server, client, Dockerfile, README",
    "verifiers": "a package of verifiers': a taskset, and the environment that plays its tasks",
}

_EPILOG = """\
Settings are those of an entry under `environments:`, as for `agentc serve`. The package holds
the world whole, so that agentc is not needed where it runs: `openenv` with a server, a client and a
Dockerfile, `verifiers` as a taskset that verifiers 0.4 plays in its own process.

  agentc dev export openenv textcraft max_depth=2 -o textcraft_env
  agentc dev export verifiers --spec specs/quickstart.yaml practice -o practice
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    for name, told in _FORMATS.items():
        chosen = formats.add_parser(name, help=told, description=told)
        add_entry_arguments(chosen)
        chosen.add_argument("-o", "--output", type=Path, metavar="DIR", required=True,
                            help="must not exist yet")  # fmt: skip
        chosen.set_defaults(locked=False)


def execute(arguments: argparse.Namespace) -> int:
    """0 written; 1 errors in settings or spec; 2 wrong command line; 3 it cannot be exported; 5 no
    such entry."""
    complaint = wrong_entry(arguments)
    if complaint is not None:
        print(f"agentc: {complaint}", file=sys.stderr)
        return EXIT_USAGE
    entry = entry_of(arguments)
    if isinstance(entry, int):
        return entry
    from agentc.emit.bundle import BundleError
    from agentc.emit.environment_package import ExportedEntry, ExportError, package_name
    from agentc.emit.openenv_package import write_openenv_package
    from agentc.emit.verifiers_package import write_verifiers_package

    name, folder = package_name(arguments.name or entry.backend.id), arguments.output
    exported = ExportedEntry(entry.backend, entry.lease, entry.software.text)
    openenv = arguments.format == "openenv"
    write = write_openenv_package if openenv else write_verifiers_package
    try:
        count = write(folder, name, exported)
    except (ExportError, BundleError, OSError) as error:
        print(f"agentc: {error}", file=sys.stderr)
        return EXIT_FAILED
    if openenv:
        print(f"{folder}: the OpenEnv package `{name}`, {count} files")
        print(f"try:   openenv validate {folder}")
        print(f"       python {folder}/server/app.py --port 8000")
    else:
        print(f"{folder}: the package `{name}` for verifiers, {count} files")
        print(f"try:   uv pip install {folder}")
        print(f"       vf-eval {name.replace('_', '-')} -n 1 --model NAME --client.base-url URL")
    return 0
