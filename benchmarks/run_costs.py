"""`python -m benchmarks.run_costs --spec SPEC --reach N [--first N] [--seeds N]`: what each run of
online RL of a spec played and cost, seed by seed, as one table.

Nothing is run: `benchmarks.seeds` did that, in the same store. When a return is reached is said by
the rule of claims on curves (docs/claims.md).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc_backends.statistics.passages import COUNTED, curve_points, first_passage
from benchmarks.reduced import ROOT

_COUNTED = COUNTED["trajectories_to"]


@dataclass(frozen=True, slots=True)
class RunCost:
    """Of one run: what it played in all, the CPU seconds of its job, and after how many
    trajectories it was where it should get (infinite: never)."""

    trajectories: int
    steps: int
    reply_tokens: int
    cpu_s: float
    reached: float


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the table on standard output; 1 where the store lacks a run."""
    parser = argparse.ArgumentParser(prog="benchmarks.run_costs", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="has a param `seed`")
    parser.add_argument("--scale", metavar="NAME", help="one of the spec's `scales:`")
    parser.add_argument("--reach", type=float, required=True, help="the return that counts")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first seed")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="how many")
    parser.add_argument("--store", type=Path, default=ROOT / ".agentc" / "store")
    options = parser.parse_args(arguments)
    found: dict[str, list[RunCost]] = {}
    for seed in range(options.first, options.first + options.seeds):
        plan = compile_spec(
            options.spec, {"seed": str(seed)}, load_backends(), scale=options.scale
        ).plan
        assert plan is not None
        for job in plan.jobs:
            if job.draft.kind == "online_rl":
                folder = options.store / "objects" / job.object
                try:
                    cost = cost_of(folder, options.reach)
                except OSError:
                    print(f"no run `{job.stage}` of seed {seed} in {options.store}: run it first")
                    return 1
                found.setdefault(job.stage, []).append(cost)
    print("\n".join(table(found, options.reach)))
    return 0


def cost_of(folder: Path, reach: float) -> RunCost:
    """Of the object of a run in a store. Raises OSError where it is not there."""
    manifest = json.loads((folder / "artifact.json").read_text(encoding="utf-8"))
    run: Mapping[str, Any] = json.loads((folder / "data" / "run.json").read_text(encoding="utf-8"))
    lines = (folder / "data" / "curve.jsonl").read_text(encoding="utf-8").splitlines()
    points = curve_points([json.loads(line) for line in lines], _COUNTED)
    return RunCost(
        trajectories=run["trajectories"],
        steps=run["steps"],
        reply_tokens=run["reply_tokens"],
        cpu_s=manifest["cpu_s"],
        reached=first_passage(points, reach, 0.95).at,
    )


def table(found: Mapping[str, Sequence[RunCost]], reach: float) -> list[str]:
    """Markdown lines: a row for each stage, its seeds in order."""
    lines = [
        f"| run | episodes | until a return of {reach:g} | steps | reply tokens | CPU s |",
        "|---|---|---|---|---|---|",
    ]
    for stage, runs in found.items():
        cells = (
            _range([one.trajectories for one in runs]),
            ", ".join("never" if math.isinf(one.reached) else f"{one.reached:g}" for one in runs),
            _range([one.steps for one in runs]),
            _range([one.reply_tokens for one in runs]),
            _range([round(one.cpu_s) for one in runs]),
        )
        lines.append(f"| `{stage}` | {' | '.join(cells)} |")
    return lines


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


if __name__ == "__main__":
    sys.exit(main())
