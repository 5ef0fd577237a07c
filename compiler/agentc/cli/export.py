"""`agentc export openenv NAME [SETTING=VALUE...] -o DIR`: an environment as a package of others'
format."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentc.cli import env_serve
from agentc.exit_codes import EXIT_FAILED, EXIT_USAGE

HELP = "write an environment as an OpenEnv package: client, server, Dockerfile, README"

_EPILOG = """\
Settings are those of an entry under `environments:`, as for `agentc env-serve`. The package holds
the server whole, so that agentc is not needed where it runs.

  agentc export openenv textcraft max_depth=2 -o textcraft_env
  agentc export openenv --spec specs/quickstart.yaml practice -o practice_env
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument("format", choices=("openenv",), help="whose format")
    env_serve.add_entry_arguments(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True,
                        help="must not exist yet")  # fmt: skip
    parser.set_defaults(locked=False)


def execute(arguments: argparse.Namespace) -> int:
    """0 written; 1 errors in settings or spec; 2 wrong command line; 3 it cannot be exported; 5 no
    such entry."""
    complaint = env_serve.wrong_entry(arguments)
    if complaint is not None:
        print(f"agentc: {complaint}", file=sys.stderr)
        return EXIT_USAGE
    entry = env_serve.entry_of(arguments)
    if isinstance(entry, int):
        return entry
    from agentc.emit.bundle import BundleError
    from agentc.emit.openenv_package import ExportError, package_name, write_openenv_package

    name = package_name(arguments.name or entry.backend.id)
    lock = entry.software.text
    try:
        count = write_openenv_package(arguments.output, name, entry.backend, entry.lease, lock)
    except (ExportError, BundleError, OSError) as error:
        print(f"agentc: {error}", file=sys.stderr)
        return EXIT_FAILED
    print(f"{arguments.output}: the OpenEnv package `{name}`, {count} files")
    print(f"try:   openenv validate {arguments.output}")
    print(f"       python {arguments.output}/server/app.py --port 8000")
    return 0
