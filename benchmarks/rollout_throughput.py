"""Bench a: tokens/s of the rollout job, against its server's engine alone and against one episode
at a time.

All of them generate the same tokens: seeds belong to requests, not to the order of arrival.
Neighbours: `offline_engine.py`, the program that drives the engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentc.store.paths import open_store
from benchmarks.figures import Figure
from benchmarks.reduced import ROOT, Size
from benchmarks.workplace import Workplace, jobs_of, manifest, object_folder

IN_FLIGHT = 32
REPEATS = 2
TARGET = 0.9
STAGE = "eto.1.explore"


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens generated, seconds on the clock, seconds of the server's CPU (of the engine's)."""

    tokens: int
    wall_s: float
    cpu_s: float


def measure_rollout_throughput(workplace: Workplace) -> list[Figure]:
    """For the quickstart's own model, which costs little more than its requests do, and for a
    larger one."""
    larger = Size(larger_model=True, sft_steps=2, explored_tasks=12)
    return [
        *_compare(workplace, "quickstart's model", Size(explored_tasks=32)),
        *_compare(workplace, "larger model", larger),
    ]


def _compare(workplace: Workplace, model: str, size: Size) -> list[Figure]:
    """Best of two (one episode at a time: once), by turns, so that all meet the same load."""
    label = "larger" if size.larger_model else "own"
    spec, _ = workplace.reduced(f"base-{label}", size)
    base = workplace.store(f"base-{label}")
    workplace.agentc("run", str(spec), "--store", str(base), "--until", "sft", "--plain")
    # What the server costs before it serves is no part of a throughput: one task tells.
    start = _rollout(workplace, base, f"{label}-start", replace(size, explored_tasks=1)).cpu_s
    rollouts, engines = [], []
    for repeat in range(REPEATS):
        name = f"{label}-{repeat}"
        rollouts.append(_rollout(workplace, base, name, replace(size, exploring=IN_FLIGHT)))
        engines.append(_engine(workplace, name))
    single = _rollout(workplace, base, f"{label}-single", replace(size, exploring=1))
    rollout, engine = (min(runs, key=lambda one: one.wall_s) for runs in (rollouts, engines))
    rollout_cpu = min(one.cpu_s for one in rollouts) - start
    engine_cpu = min(one.cpu_s for one in engines)
    counts = {run.tokens for run in (*rollouts, *engines, single)}
    spread = "all runs generate the same" if len(counts) == 1 else f"runs: {sorted(counts)}"
    speed = rollout.tokens / rollout.wall_s
    engine_speed, single_speed = engine.tokens / engine.wall_s, single.tokens / single.wall_s
    per_cpu = rollout.tokens / rollout_cpu, engine.tokens / engine_cpu
    single_cpu = single.tokens / (single.cpu_s - start)
    return [
        _figure(
            f"{model}: rollout job, {IN_FLIGHT} in flight",
            speed,
            None,
            "",
            f"{rollout.tokens} tokens, {spread}",
        ),
        _figure(
            f"{model}: engine alone, {IN_FLIGHT} in flight",
            engine_speed,
            speed / engine_speed,
            f"rollout / this; target {TARGET}",
            f"tokens per CPU second: server {per_cpu[0]:.0f}, engine {per_cpu[1]:.0f} "
            f"(ratio {per_cpu[0] / per_cpu[1]:.2f})",
        ),
        _figure(
            f"{model}: rollout job, one at a time",
            single_speed,
            speed / single_speed,
            "rollout / this",
            f"tokens per CPU second of the server: {single_cpu:.0f} "
            f"(ratio {per_cpu[0] / single_cpu:.1f})",
        ),
    ]


def _figure(name: str, speed: float, ratio: float | None, against: str, note: str) -> Figure:
    return Figure(
        bench="a", name=name, value=speed, unit="tok/s", ratio=ratio, against=against, note=note
    )


def _rollout(workplace: Workplace, base: Path, name: str, size: Size) -> Speed:
    """The rollout job in a store of its own; its throughput is what the job itself recorded."""
    _, plan = workplace.reduced(f"rollout-{name}", size)
    store = workplace.store(name, like=base)
    workplace.job(plan, store, STAGE)
    made = manifest(store, _stage(plan))
    server = next(lease for lease in made["leases"] if lease["role"] == "policy")
    facts = made["facts"]
    tokens = int(facts["completion_tokens"])
    return Speed(tokens, tokens / facts["tokens_per_s"], server["cpu_s"])


def _engine(workplace: Workplace, name: str) -> Speed:
    """The requests of that rollout on the engine alone."""
    plan = workplace.folder / f"rollout-{name}" / "plan.json"
    store = workplace.folder / f"store-{name}"
    job = _stage(plan)
    model = store / "objects" / job["inputs"]["model"][0] / "data"
    rows = object_folder(store, job) / "data" / "trajectories.jsonl"
    decode = json.dumps(job["config"]["decode"])
    lock = json.loads(plan.read_text(encoding="utf-8"))["environments"]["torch"]["lock"]
    python = open_store(str(store)).software_stack(lock) / "bin" / "python"
    argv = [str(python), "-m", "benchmarks.offline_engine", str(model), str(rows)]
    argv += [decode, str(IN_FLIGHT)]
    path = ":".join(str(ROOT / name) for name in ("compiler", "backends", "."))
    out = workplace.folder / f"engine-{name}.json"
    workplace.run([*argv, str(out)], PYTHONPATH=path, TOKENIZERS_PARALLELISM="false")
    return Speed(**json.loads(out.read_text(encoding="utf-8")))


def _stage(plan: Path) -> dict[str, Any]:
    return next(job for job in jobs_of(plan) if job["id"] == STAGE)
