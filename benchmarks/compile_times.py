"""Bench d: how long one waits for `agentc check`, `plan`, and a run that has nothing to do.

Whole commands, the start of the interpreter included.
"""

from __future__ import annotations

import statistics

from benchmarks.figures import Figure
from benchmarks.workplace import Workplace

REPEATS = 5
CHECK_LIMIT_S = 0.3
IDLE_RUN_LIMIT_S = 1.0


def measure_compile_times(workplace: Workplace) -> list[Figure]:
    """Best of five, with the median and the seconds of CPU beside it. Ratios are to the limits of
    the design: 0.3 s for a check, 1 s for a run that has nothing to do."""
    empty = str(workplace.folder / "no-store")
    figures = []
    for spec in ("specs/quickstart.yaml", "specs/eto/sciworld.yaml"):
        figures.append(_best(workplace, f"check {spec}", ["check", spec], CHECK_LIMIT_S))
        figures.append(_best(workplace, f"plan {spec}", ["plan", spec, "--store", empty], None))
    reduced, store, _ = workplace.finished()
    words = ["run", str(reduced), "--store", str(store)]
    figures.append(_best(workplace, "run, everything finished", words, IDLE_RUN_LIMIT_S))
    return figures


def _best(workplace: Workplace, name: str, words: list[str], limit: float | None) -> Figure:
    costs = [workplace.agentc(*words) for _ in range(REPEATS)]
    best = min(cost.wall_s for cost in costs)
    middle = statistics.median(cost.wall_s for cost in costs)
    cpu = min(cost.cpu_s for cost in costs)
    return Figure(
        bench="d",
        name=f"`agentc {name}`",
        value=best,
        unit="s",
        ratio=None if limit is None else best / limit,
        against="" if limit is None else f"limit of {limit} s",
        note=f"median {middle:.2f} s, CPU {cpu:.2f} s",
    )
