"""`agentc trust [FOLDER]`: run code that lies beside a spec without `--allow-code`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from agentc.cli.arguments import add_format_argument
from agentc.exit_codes import EXIT_DONE, EXIT_NOT_FOUND, EXIT_USAGE

HELP = "trust a folder once, so that specs in it may bring their own code"

_EPILOG = """\
Files that a spec names under `backends:` run inside agentc, so they need your consent: for one
command by `--allow-code DIR`, or for good by `agentc trust DIR`. Trust is yours only. It covers a
folder, by its path and its owner, with all folders in it; what is edited there later runs too. A
folder that other users may write to is refused. See docs/security.md.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="default: the current folder"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="list the folders that you trust")
    what.add_argument("--revoke", action="store_true", help="trust the folder no longer")
    add_format_argument(parser, "of --list; json: an object a line")


def execute(arguments: argparse.Namespace) -> int:
    """0 done; 2 the folder cannot be trusted; 5 it is not on the list."""
    from agentc.source.trust import TrustError

    if arguments.list and arguments.folder is not None:
        print("agentc: `agentc trust --list` takes no folder", file=sys.stderr)
        return EXIT_USAGE
    try:
        if arguments.list:
            return _list(as_json=arguments.format == "json")
        if arguments.format == "json":
            arguments.parser.error("only --list prints JSON")
        folder = arguments.folder or Path()
        return _revoke(folder) if arguments.revoke else _trust(folder)
    except TrustError as error:
        print(f"agentc: {error}", file=sys.stderr)
        return EXIT_USAGE


def _trust(folder: Path) -> int:
    from agentc.source.trust import trust, user_name

    entry = trust(folder)
    print(f"specs may run the code in {entry.folder}; `agentc trust --revoke` takes that back")
    if entry.owner not in (os.geteuid(), 0):
        print(f"it belongs to {user_name(entry.owner)}, whose changes there run as you")
    return EXIT_DONE


def _list(*, as_json: bool) -> int:
    from agentc.source.trust import trusted_folders, user_name

    entries = trusted_folders()
    for entry in entries:
        if as_json:
            print(json.dumps(asdict(entry), sort_keys=True))
        else:
            print(f"{entry.folder}  (of {user_name(entry.owner)}, since {entry.since})")
    if not entries and not as_json:
        print("no folder is trusted; `agentc trust FOLDER` trusts one")
    return EXIT_DONE


def _revoke(folder: Path) -> int:
    from agentc.source.trust import revoke

    entry = revoke(folder)
    if entry is None:
        print(f"agentc: {folder} is not a trusted folder (`agentc trust --list`)", file=sys.stderr)
        return EXIT_NOT_FOUND
    print(f"{entry.folder} is not trusted any more")
    return EXIT_DONE
