"""`python -m benchmarks.cost_error STORE ...`: how wrong the estimates of cost are, on real runs.

For each store: every finished job is estimated from the prior alone, and from the prior with all
other jobs of the store (leave one out), its inputs being known. Then whole plans: the last plan of
each experiment is estimated as if nothing of it existed, from nothing and from each other store.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentc.backend_api import load_backends
from agentc.cost.estimate import Estimator
from agentc.cost.observe import actual_wall, learn, read_past
from agentc.cost.past import History
from agentc.cost.statements import Stated
from agentc.cost.subject import JobProfile
from agentc.cost.workload import Forecaster
from agentc.runtime.store.layout import StoreLayout

LEAST_S = 1.0
"""Jobs that took less are left out: they are starts of interpreters."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One job: ln(estimate / actual), and whether the actual time lay within the band."""

    kind: str
    error: float
    within: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with tables on standard output; 2 when a folder is no store."""
    parser = argparse.ArgumentParser(prog="benchmarks.cost_error", description=__doc__)
    parser.add_argument("stores", nargs="+", type=Path, metavar="STORE")
    options = parser.parse_args(arguments)
    stores = [StoreLayout(folder) for folder in options.stores]
    for store in stores:
        if not (store.root / "objects").is_dir():
            print(f"{store.root} is no store", file=sys.stderr)
            return 2
    stated = Stated.of(load_backends())
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, jobs of {LEAST_S:g} s and more")
    kinds = {"expert", "model", "sft", "dpo", "rollout", "pair", "evaluate", "compare", "report"}
    for number, store in enumerate(stores, 1):
        subjects = read_past([store], kinds, most=10_000)
        history = learn(subjects, [store], stated)
        print(f"\nstore {number}: {len(subjects)} finished jobs, {_machine(subjects)}")
        print(_header("one job, its inputs known"))
        for title, observed in (("prior alone", False), ("leave one out", True)):
            trials = list(_each_job(subjects, history if observed else History(), stated))
            for kind in ("all", *sorted({trial.kind for trial in trials})):
                print(_row(f"{title}, {kind}", [t for t in trials if kind in ("all", t.kind)]))
    print()
    print("whole plans, nothing of them there: estimate of all jobs' time / actual, per job median")
    for number, store in enumerate(stores, 1):
        for plan in sorted(store.root.glob("runs/*/last-plan.json")):
            _whole_plan(number, store, plan, stores, stated)
    return 0


def _each_job(subjects: dict[str, JobProfile], history: History, stated: Stated) -> Iterable[Trial]:
    for subject in subjects.values():
        wall = actual_wall(subject)
        if wall is None or wall < LEAST_S:
            continue
        before = history.without(subject.object)
        forecaster = Forecaster(subjects.get, before.of(subject.machine.is_gpu), stated)
        yield _trial(subject, wall, forecaster, before, stated)


def _trial(
    subject: JobProfile,
    wall: float,
    forecaster: Forecaster,
    history: History,
    stated: Stated,
) -> Trial:
    estimator = Estimator(store=None, subjects={}, history=history, stated=stated, walls={})
    # As a plan would know it: its inputs are finished, itself it is not.
    unseen = replace(subject, measured={})
    seconds = estimator.time(unseen, forecaster.forecast(unseen)).quantity
    return Trial(subject.kind, math.log(seconds.median / wall), seconds.low <= wall <= seconds.high)


def _whole_plan(
    number: int,
    store: StoreLayout,
    path: Path,
    stores: Sequence[StoreLayout],
    stated: Stated,
) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    kinds = {str(job["kind"]) for job in document["jobs"]}
    made = read_past([store], kinds, most=10_000)
    walls = {name: actual_wall(subject) for name, subject in made.items()}
    for source in (None, *(other for other in stores if other is not store)):
        learned = {} if source is None else read_past([source], kinds, most=10_000)
        history = learn(learned, [] if source is None else [source], stated)
        estimator = Estimator(store=None, subjects={}, history=history, stated=stated, walls={})
        found = estimator.estimate(document, {})
        pairs = {
            each.object: (each.seconds.median, wall)
            for each in found.values()
            if (wall := walls.get(each.object)) is not None
        }
        if len(pairs) < len({each.object for each in found.values()}) / 2:
            return
        whole = sum(guess for guess, _ in pairs.values()) / sum(w for _, w in pairs.values())
        errors = [abs(math.log(g / w)) for g, w in pairs.values() if w >= LEAST_S]
        title = "the prior" if source is None else f"store {stores.index(source) + 1}"
        print(
            f"  {document['name']} of store {number} from {title}: {whole:.2f}, "
            f"factor {math.exp(statistics.median(errors)):.2f} ({len(pairs)} jobs)"
        )


def _header(title: str) -> str:
    return f"  {title:<28} {'jobs':>5} {'bias':>6} {'factor':>7} {'worst':>6} {'in band':>8}"


def _row(title: str, trials: Sequence[Trial]) -> str:
    """Bias: median of estimate / actual. Factor: median of how many times too long or too short."""
    errors = [trial.error for trial in trials]
    off = [abs(error) for error in errors]
    within = sum(trial.within for trial in trials) / len(trials)
    return (
        f"  {title:<28} {len(trials):>5} {math.exp(statistics.median(errors)):>6.2f} "
        f"{math.exp(statistics.median(off)):>7.2f} {math.exp(max(off)):>6.1f} {within:>8.0%}"
    )


def _machine(subjects: dict[str, JobProfile]) -> str:
    hardware = [subject.measured.get("hardware") or {} for subject in subjects.values()]
    known = {f"{each.get('cpus')} x {each.get('cpu')}" for each in hardware}
    return ", ".join(sorted(known)) or "no machine known"


if __name__ == "__main__":
    raise SystemExit(main())
