"""`agentc env hash LOCK...`: the hashes that a lock needs before anything is installed from it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_STORE

HELP = "put the hashes of its packages' files into a lock, without changing a version"
_EXIT_ERROR = 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the action."""
    parser.add_argument("locks", nargs="+", type=Path, metavar="LOCK", help="lock files")
    parser.add_argument(
        "--file",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a wheel or source of a pinned version that the index does not have, as of a build of"
        " your own; may be given several times",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 where a hash is missing"
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 done; 1 a hash is missing or cannot be found; 5 no such file; 4 it cannot be written."""
    from agentc.runtime.software.lock_text import LockTextError, enumerate_names, read_lock_text
    from agentc.software.hashing import HashingError, with_hashes

    code = 0
    for lock in arguments.locks:
        try:
            text = lock.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            print(f"agentc: {lock} cannot be read: {error}", file=sys.stderr)
            return EXIT_NOT_FOUND
        try:
            if arguments.check:
                lacking = read_lock_text(text).unhashed
                if lacking:
                    print(f"{lock}: no hash for {enumerate_names(lacking)}")
                    code = _EXIT_ERROR
                continue
            hashed = with_hashes(text, arguments.file, directory=lock.parent)
        except (HashingError, LockTextError, OSError) as error:
            print(f"agentc: {lock}: {error}", file=sys.stderr)
            return _EXIT_ERROR
        if hashed == text:
            print(f"{lock}: has them all")
            continue
        try:
            lock.write_text(hashed, encoding="utf-8")
        except OSError as error:
            print(f"agentc: {lock} cannot be written: {error}", file=sys.stderr)
            return EXIT_STORE
        print(f"{lock}: {hashed.count('--hash=') - text.count('--hash=')} hashes added")
    return code
