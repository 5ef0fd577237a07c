"""`agentc import PAPER CONFIG [FILE]`: a configuration of released code as a spec."""

# A keyword for Python; the command line imports modules by the names of their verbs.
# ruff: noqa: N999

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentc.cli.parser import write_new_file
from agentc.exit_codes import EXIT_DONE, EXIT_USAGE

HELP = "write a configuration of a paper's released code as a spec"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("paper", choices=("archer",), metavar="PAPER", help="whose: archer")
    parser.add_argument(
        "config", type=Path, metavar="CONFIG", help="such as scripts/config/archer_20q.yaml"
    )
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="default: standard output"
    )
    parser.epilog = (
        "Each key becomes a setting with the key behind it, or is named at the head of the spec\n"
        "with the reason. docs/design/archer_released.md has the table."
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 with the spec written; 1 where the configuration says nothing that could be one, 2 where
    FILE is there already."""
    from agentc.cli.arguments import show_diagnostics
    from agentc.diagnostics import Sink
    from agentc.importing.archer import import_archer
    from agentc.importing.compose import compose

    sink, config = Sink(), arguments.config
    try:
        found = import_archer(config.name, compose(config, sink))
    finally:
        show_diagnostics(sink.sorted())
    for crash in found.crashes:
        print(f"as released, {crash}", file=sys.stderr)
    target: Path | None = arguments.file
    if target is None:
        print(found.text, end="")
        return EXIT_DONE
    if not write_new_file(target, found.text):
        return EXIT_USAGE
    print(f"wrote {target}; next: agentc check {target}")
    return EXIT_DONE
