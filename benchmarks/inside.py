"""Bench e: episodes/s of jobs with the environment in their own process, against its server.

The same jobs each time, an expert stage, rollouts of a scripted policy and of a model on the
embedded server, with the same files as results, through the job wrapper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.figures import Figure
from benchmarks.processes import CommandError
from benchmarks.workplace import Workplace, jobs_of, manifest

WHERE = ("auto", "server")
REPEATS = 2
_STAGES: Mapping[str, Mapping[str, Any]] = {
    "expert": {"kind": "expert", "prompt": "react", "split": "train"},
    "scripted": {
        "kind": "rollout",
        "policy": "nobody",
        "server": "script",
        "prompt": "react",
        "split": "train",
        "limit": 100,
        "max_turns": 8,
        "decode": {"temperature": 1.0, "max_tokens": 16},
    },
    # Every reply of this one is an action: an untrained model writes none in another format.
    "model": {
        "kind": "rollout",
        "policy": "nobody",
        "server": "local",
        "prompt": "plain",
        "split": "test",
        "limit": 32,
        "max_turns": 6,
        "decode": {"temperature": 1.0, "max_tokens": 16},
    },
}
_SPEC: Mapping[str, Any] = {
    "agentc": 1,
    "name": "inside",
    "environments": {"textcraft": {"backend": "textcraft"}},
    "servers": {
        "script": {
            "backend": "scripted",
            "max_model_len": 8192,
            "rules": [{"reply": ["Action: inventory", "Action: get 1 oak log"]}],
        },
        "local": {"backend": "transformers"},
    },
    "models": {
        "nobody": {
            "backend": "scratch",
            "corpus": "corpus",
            "context": 8192,
            "hidden_size": 128,
            "layers": 2,
            "heads": 2,
            "vocab_size": 300,
        }
    },
    "prompts": {
        "react": {"instruction": "Craft.", "reply_format": "react"},
        "plain": {"instruction": "Craft.", "reply_format": "action_only"},
    },
}


@dataclass(frozen=True, slots=True)
class Speed:
    """Episodes and turns of a job, its seconds on the clock, and of CPU: program and environment's
    server; the digest of what it made."""

    episodes: int
    turns: int
    wall_s: float
    cpu_s: float
    digest: str


def measure_inside(workplace: Workplace) -> list[Figure]:
    """Best of two by the clock, by turns. Raises CommandError where the results differ."""
    runs: dict[tuple[str, str], list[Speed]] = {}
    plans = {where: _compiled(workplace, where) for where in WHERE}
    base = workplace.store("inside")
    for job in jobs_of(plans["auto"]):
        if job["id"] not in _STAGES and job["kind"] != "report":
            workplace.job(plans["auto"], base, job["id"])
    for repeat in range(REPEATS):
        for where, plan in plans.items():
            store = workplace.store(f"inside-{where}-{repeat}", like=base)
            for stage in _STAGES:
                workplace.job(plan, store, stage)
                runs.setdefault((stage, where), []).append(_speed(plan, store, stage))
    figures = []
    for stage in _STAGES:
        if len({one.digest for where in WHERE for one in runs[stage, where]}) != 1:
            raise CommandError(f"{stage}: the environment's place changes the result")
        here, there = (min(runs[stage, w], key=lambda one: one.wall_s) for w in WHERE)
        figures += [
            _figure(f"{stage}: environment in the job's process", here, None),
            _figure(f"{stage}: environment behind HTTP", there, here),
        ]
    return figures


def _figure(name: str, speed: Speed, other: Speed | None) -> Figure:
    rate = speed.episodes / speed.wall_s
    return Figure(
        bench="e",
        name=name,
        value=rate,
        unit="episodes/s",
        ratio=None if other is None else other.episodes / other.wall_s / rate,
        against="" if other is None else "in process / this; equal files",
        note=f"{speed.episodes} episodes, {speed.turns} turns; "
        f"{1000 * speed.cpu_s / speed.turns:.1f} ms of CPU a turn, model server aside",
    )


def _compiled(workplace: Workplace, where: str) -> Path:
    corpus = {"kind": "expert", "prompt": "react", "split": "validation", "limit": 4}
    stages = {name: {**stage, "environment_at": where} for name, stage in _STAGES.items()}
    spec = workplace.folder / f"inside-{where}.yaml"
    spec.write_text(yaml.safe_dump({**_SPEC, "stages": {"corpus": corpus, **stages}}))
    workplace.agentc("bundle", "--bare", str(spec), "-o", str(spec.with_suffix("")))
    return spec.with_suffix("") / "plan.json"


def _speed(plan: Path, store: Path, stage: str) -> Speed:
    made = manifest(store, next(job for job in jobs_of(plan) if job["id"] == stage))
    facts = made["facts"]
    servers = [lease for lease in made["leases"] if lease["role"] == "environment"]
    cpu = made["cpu_s"] + sum(lease.get("cpu_s") or 0.0 for lease in servers)
    # A start of the environment's server is a cost of the expert stage; in rollouts the model
    # server's, beside it, takes longer.
    alone = len(made["leases"]) == 1
    seconds = made["program_s"] + (servers[0].get("ready_s") or 0.0 if alone else 0.0)
    digest = made["files"]["data/trajectories.jsonl"]
    return Speed(facts["episodes"], facts["turns"], seconds, cpu, digest)
