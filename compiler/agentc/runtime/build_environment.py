"""`python -m agentc.runtime.build_environment LOCK...`: build software environments ahead of use.

Does what a run does before its first job (see `environment.py`), for the Makefile and for people
who prepare a machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agentc.runtime.software.environment import SoftwareEnvironmentError, ensure_environment
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout


def main(argv: Sequence[str] | None = None) -> int:
    """0 when every environment is there, 1 when one cannot be built."""
    parser = argparse.ArgumentParser(prog="agentc.runtime.build_environment", description=__doc__)
    parser.add_argument("locks", nargs="+", type=Path, metavar="LOCK", help="requirements files")
    parser.add_argument("--store", type=Path, default=Path(".agentc/store"))
    parser.add_argument("--print-python", action="store_true", help="print the interpreters' paths")
    options = parser.parse_args(argv)
    layout = StoreLayout(options.store.resolve())
    for lock in options.locks:
        text = lock.read_text(encoding="utf-8")
        digest = lock_digest(text)

        def report(line: str, name: str = lock.stem) -> None:
            if not options.print_python:
                print(f"environment {name}: {line}", flush=True)

        try:
            directory, _ = ensure_environment(layout, digest, text, report)
        except SoftwareEnvironmentError as error:
            print(f"environment {lock.stem}: {error}", file=sys.stderr)
            return 1
        if options.print_python:
            print(directory / "bin" / "python")
    return 0


if __name__ == "__main__":
    sys.exit(main())
