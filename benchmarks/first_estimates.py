"""`python -m benchmarks.first_estimates [--stores DIR] [SPEC[:SCALE] ...]`: how wrong are they?

Each spec is planned on a store of its own that holds nothing, and then run. The estimate for an
idle machine is compared with the schedule of what the jobs took: each with its CPU seconds where
the machine was shared and its wall time is longer. Software is there before. Stores in DIR are
kept, and what they hold is not run again. `notes/estimates.md` has the results.
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
from dataclasses import dataclass, replace
from pathlib import Path

from agentc.cost import Quantity, estimate_plan
from agentc.cost.observe import actual_wall, read_subject
from agentc.cost.summary import wall_left
from benchmarks.reduced import ROOT

SPECS = (
    "specs/quickstart.yaml",
    "specs/quickstart.yaml:smoke",
    "specs/compare/eto_grpo.yaml:smoke",
    "specs/eto/baselines_webshop.yaml:smoke",
    "specs/scripts/filter.yaml",
    "specs/agent_r/tiny.yaml:smoke",
    "specs/agent_r/webshop.yaml:smoke",
    "specs/archer/corridor.yaml",
    "specs/archer/rivals.yaml",
    "specs/archer/tiny.yaml:smoke",
    "specs/sweet_rl/tiny.yaml:smoke",
    "specs/sweet_rl/backend.yaml:smoke",
)
"""Of each family, what runs on two cores without weights; four of them whole."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Seconds of a whole run: the estimate's band and middle for an idle machine, what the jobs
    took there (see above), and their CPU seconds."""

    spec: str
    low: float
    middle: float
    high: float
    took: float
    cpu: float

    @property
    def held(self) -> bool:
        """Whether the band holds the actual time."""
        return self.low <= self.took <= self.high

    @property
    def ratio(self) -> float:
        """Estimate over actual."""
        return self.middle / self.took


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with a table on standard output, else the exit code of the first run that failed."""
    parser = argparse.ArgumentParser(prog="benchmarks.first_estimates", description=__doc__)
    parser.add_argument("specs", nargs="*", default=SPECS, metavar="SPEC[:SCALE]")
    parser.add_argument("--stores", type=Path, metavar="DIR", help="where stores are kept")
    options = parser.parse_args(arguments)
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, {os.cpu_count()} cores\n")
    print("| spec | estimate | band | took | estimate / took | within the band | CPU |")
    print("|---|---|---|---|---|---|---|", flush=True)
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="agentc-first-") as scratch:
        for named in options.specs:
            try:
                trials.append(_tried(named, options.stores or Path(scratch), Path(scratch)))
            except subprocess.CalledProcessError as error:
                print(f"{named}: {error}\n{error.stdout}{error.stderr}", file=sys.stderr)
                return error.returncode
            print(_row(trials[-1]), flush=True)
    held = sum(trial.held for trial in trials)
    twice = sum(0.5 <= trial.ratio <= 2 for trial in trials)
    far = max(max(trial.ratio, 1 / trial.ratio) for trial in trials)
    print(f"\nwithin the band: {held} of {len(trials)}; within a factor of two: {twice}; "
          f"furthest off: {far:.1f} times")  # fmt: skip
    return 0


def _tried(named: str, stores: Path, scratch: Path) -> Trial:
    """Raises CalledProcessError where `agentc` fails."""
    spec, _, scale = named.partition(":")
    words = [spec, *(["--scale", scale] if scale else [])]
    empty, store = scratch / "empty", stores / named.strip("/").replace("/", "_")
    planned = json.loads(_agentc("plan", *words, "--store", str(empty), "--format", "json"))
    low, middle, high = planned["estimate"]["wall_s"]
    _agentc("run", *words, "--store", str(store), "--plain")
    took, cpu = _actual(store, int(planned["estimate"]["cores"]))
    return Trial(named, low, middle, high, took, cpu)


def _actual(store: Path, cores: int) -> tuple[float, float]:
    """Wall time on an idle machine, and CPU seconds, of the last run of a store."""
    [plan] = store.glob("runs/*/last-plan.json")
    document = json.loads(plan.read_text(encoding="utf-8"))
    estimates, cpu = estimate_plan(document, None), {}
    for job in document["jobs"]:
        made = read_subject(store / "objects" / job["kind"] / job["key"])
        assert made is not None
        manifest = made.measured
        leases = (lease.get("cpu_s") or 0.0 for lease in manifest["leases"])
        seconds = Quantity(actual_wall(made) or float(manifest["wall_s"]))
        estimates[job["id"]] = replace(estimates[job["id"]], seconds=seconds)
        cpu[made.object] = float(manifest["cpu_s"]) + sum(leases)
    return wall_left(document, estimates, cores)({}), sum(cpu.values())


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
        f"| {trial.took:.0f} s | {trial.ratio:.2f} "
        f"| {'yes' if trial.held else 'no'} | {trial.cpu:.0f} s |"
    )


if __name__ == "__main__":
    raise SystemExit(main())
