"""`python -m agentc.runtime.build_software LOCK...`: build software stacks ahead of use.

Does what a run does before its first job (see `job_software.py`), for the Makefile and for people
who prepare a machine.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from agentc.runtime.software.job_software import SoftwareError, ensure_software
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout, renamed_variable


def main(argv: Sequence[str] | None = None) -> int:
    """0 when every stack is there, 1 when one cannot be built."""
    parser = argparse.ArgumentParser(prog="agentc.runtime.build_software", description=__doc__)
    parser.add_argument("locks", nargs="+", type=Path, metavar="LOCK", help="requirements files")
    parser.add_argument("--store", type=Path, default=Path(".agentc/store"))
    parser.add_argument("--print-python", action="store_true", help="print the interpreters' paths")
    options = parser.parse_args(argv)
    renamed = renamed_variable(os.environ)
    if renamed is not None:
        parser.error(renamed)
    layout = StoreLayout(options.store.resolve())
    for lock in options.locks:
        text = lock.read_text(encoding="utf-8")
        digest = lock_digest(text)

        def report(line: str, name: str = lock.stem) -> None:
            if not options.print_python:
                print(f"software {name}: {line}", flush=True)

        try:
            directory, _ = ensure_software(layout, digest, text, report)
        except SoftwareError as error:
            print(f"software {lock.stem}: {error}", file=sys.stderr)
            return 1
        if options.print_python:
            print(directory / "bin" / "python")
    return 0


if __name__ == "__main__":
    sys.exit(main())
