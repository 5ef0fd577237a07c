"""`python watched.py NOTES compile|job WORDS...`: the command line or a job's wrapper,
watched; the programs and the servers that a wrapper starts are watched too."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from watch import Watch, markers_of

from agentc.runtime.software import job_software


def main() -> int:
    """The exit status of what was watched."""
    notes, what, *words = sys.argv[1:]
    plain = job_software.python_command

    def python_command(*given: Any, **named: Any) -> list[str]:
        """Its Python, with `watch.py` before the program's words."""
        here = str(Path(__file__).with_name("watch.py"))
        return [*plain(*given, **named), here, notes]

    watch = Watch(markers_of(Path(notes)), deep=True)
    watch.start()
    try:
        if what == "compile":
            status: int = importlib.import_module("agentc.cli").main(["bundle", "--bare", *words])
        else:
            job_software.python_command = python_command
            status = importlib.import_module("agentc.runtime.job").main(words)
    finally:
        watch.stop()
        Path(notes, f"{what}.json").write_text(json.dumps(watch.seen), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
