"""`agentc dev ...`: commands for authors of backends and for editors and shells."""

from __future__ import annotations

import argparse

from agentc.cli import completion, conformance, export, schema
from agentc.cli.parser import add_command

HELP = "for authors of backends, editors and shells: conformance, schema, export, completion"

_ACTIONS = {
    "conformance": conformance,
    "schema": schema,
    "export": export,
    "completion": completion,
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    actions = parser.add_subparsers(metavar=f"{{{','.join(_ACTIONS)}}}", required=True)
    for name, action in _ACTIONS.items():
        add_command(actions, name, action, dest="dev_action")


def execute(arguments: argparse.Namespace) -> int:
    """As the action has it."""
    code: int = arguments.dev_action.execute(arguments)
    return code
