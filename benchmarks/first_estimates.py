"""`python -m benchmarks.first_estimates [--beside N] [SPEC[:SCALE] ...]`: how wrong are they?

Each spec is planned on a store of its own that holds nothing, and then run: what
`agentc plan --cost` said of the whole (its band, and the middle) beside what `agentc run`
took by the clock. Software is there before. `--beside` has N processes compute all the
while. `notes/benchmarks.md` has what was seen.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.reduced import ROOT

SPECS = (
    "specs/quickstart.yaml",
    "specs/quickstart.yaml:smoke",
    "specs/compare/eto_grpo.yaml:smoke",
    "specs/eto/baselines_alfworld.yaml:smoke",
    "specs/eto/baselines_webshop.yaml:smoke",
    "specs/eto/table4.yaml:smoke",
    "specs/agent_r/tiny.yaml:smoke",
    "specs/agent_r/multi_task.yaml:smoke",
    "specs/archer/corridor.yaml",
    "specs/archer/rivals.yaml",
    "specs/archer/tiny.yaml:smoke",
    "specs/sweet_rl/tiny.yaml:smoke",
)
"""Of each family, what runs on two cores without weights; three of them whole."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Seconds of a whole run: the estimate's band and middle before it, and what it took; the load
    average and the share of the cores that `agentc plan --cost` found to be free before."""

    spec: str
    low: float
    middle: float
    high: float
    took: float
    load: float
    free: float

    @property
    def held(self) -> bool:
        """Whether the band holds the actual time."""
        return self.low <= self.took <= self.high


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with a table on standard output, else the exit code of the first run that failed."""
    parser = argparse.ArgumentParser(prog="benchmarks.first_estimates", description=__doc__)
    parser.add_argument("specs", nargs="*", default=SPECS, metavar="SPEC[:SCALE]")
    parser.add_argument(
        "--beside", type=int, default=0, metavar="N", help="processes that compute beside"
    )
    options = parser.parse_args(arguments)
    with ExitStack() as others:
        for _ in range(options.beside):
            others.callback(subprocess.Popen([sys.executable, "-c", "while True: pass"]).kill)
        return _try_all(options.specs, options.beside)


def _try_all(specs: Sequence[str], beside: int) -> int:
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {beside} processes beside"
    print(f"{time.strftime('%Y-%m-%d')}, {machine}\n")
    print("| spec | estimate | band | took | estimate / actual | held | load before | free cores |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    trials: list[Trial] = []
    for named in specs:
        try:
            trials.append(_tried(named))
        except subprocess.CalledProcessError as error:
            print(f"{named}: {error}\n{error.stdout}{error.stderr}", file=sys.stderr)
            return error.returncode
        print(_row(trials[-1]), flush=True)
    held = sum(trial.held for trial in trials)
    twice = sum(0.5 <= trial.middle / trial.took <= 2 for trial in trials)
    print(f"\nbands that hold: {held} of {len(trials)}; within a factor of two: {twice}")
    return 0


def _tried(named: str) -> Trial:
    """Raises CalledProcessError where `agentc` fails."""
    spec, _, scale = named.partition(":")
    with tempfile.TemporaryDirectory(prefix="agentc-first-") as store:
        words = [spec, *(["--scale", scale] if scale else []), "--store", store]
        load = os.getloadavg()[0]
        planned = json.loads(_agentc("plan", "--cost", *words, "--format", "json"))
        low, middle, high = planned["total"]["wall_s"]
        free = float(planned["total"]["share_of_cores"])
        began = time.monotonic()
        _agentc("run", *words, "--plain")
        return Trial(named, low, middle, high, time.monotonic() - began, load, free)


def _agentc(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "agentc", *words],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def _row(trial: Trial) -> str:
    return (
        f"| `{trial.spec}` | {trial.middle:.0f} s | {trial.low:.0f} to {trial.high:.0f} s "
        f"| {trial.took:.0f} s | {trial.middle / trial.took:.2f} "
        f"| {'yes' if trial.held else 'no'} | {trial.load:.1f} | {trial.free:.0%} |"
    )


if __name__ == "__main__":
    raise SystemExit(main())
