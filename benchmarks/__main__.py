"""`python -m benchmarks [a|b|c|d|e ...] [--json FILE]`: run benches, print their table.

Run it from the top of the repository, after `make software`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.compile_times import measure_compile_times
from benchmarks.figures import Figure, markdown
from benchmarks.inside import measure_inside
from benchmarks.job_overhead import measure_job_overhead
from benchmarks.processes import CommandError
from benchmarks.reduced import ROOT
from benchmarks.rollout_throughput import measure_rollout_throughput
from benchmarks.script_order import measure_script_order
from benchmarks.workplace import Workplace

BENCHES: dict[str, Callable[[Workplace], list[Figure]]] = {
    "a": measure_rollout_throughput,
    "b": measure_job_overhead,
    "c": measure_script_order,
    "d": measure_compile_times,
    "e": measure_inside,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the table on standard output; 1 when a measured command failed."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="BENCH", help="a, b, c, d, e; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(BENCHES))
    if unknown:
        parser.error(f"no bench {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    os.environ.setdefault("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    os.environ.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # a user's second command finds modules compiled
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="agentc-benchmarks-") as folder:
        workplace = Workplace(Path(folder))
        for name in options.names or BENCHES:
            began = time.monotonic()
            before = os.getloadavg()[0]
            try:
                figures += BENCHES[name](workplace)
            except CommandError as error:
                print(f"bench {name}: {error}", file=sys.stderr)
                return 1
            took = time.monotonic() - began
            print(
                f"bench {name}: {took:.0f} s; load average {before:.1f} before, "
                f"{os.getloadavg()[0]:.1f} after",
                file=sys.stderr,
                flush=True,
            )
    print(markdown(figures))
    if options.json is not None:
        text = json.dumps([asdict(figure) for figure in figures], indent=2, ensure_ascii=False)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
