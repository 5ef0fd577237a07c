"""Follows three values of `spec.yaml` from the text to where they act, at run time.

Compiling is watched in a process of its own; then every job is made by its wrapper, as Snakemake
starts it; that of the job where a value acts is watched, with its program and servers (`watch.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S

from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MARKERS: Mapping[str, float] = {"beta": 0.123457, "tensor_parallel": 1021, "max_depth": 12347}
ROADS: Mapping[str, str] = {
    "beta": "dpo",
    "tensor_parallel": "explore_large",
    "max_depth": "expert",
}
"""The job that each value acts in."""
_EMPTY = "# vLLM stays away: no machine has N GPUs\n"

Seen = dict[str, dict[str, str]]
"""By marker and module: "hand" or "inside" (`watch.py`)."""


@dataclass(frozen=True, slots=True)
class Road:
    """Where a value passed: while compiling, in the wrapper, in the program or the server. Of each
    module, whether it had the value in hand."""

    name: str
    compiling: dict[str, str]
    wrapper: dict[str, str]
    program: dict[str, str]

    def in_hand(self) -> set[str]:
        """The modules that read it, give it on or make another form of it."""
        parts = (self.compiling, self.wrapper, self.program)
        return {module for part in parts for module, how in part.items() if how == "hand"}

    def all(self) -> set[str]:
        """With those that hold something larger around it."""
        return {*self.compiling, *self.wrapper, *self.program}


def follow(folder: Path) -> tuple[Road, ...]:
    """All roads, whole. Needs the light and the torch software stack."""
    compiling = watch_compile(folder)
    plan, store = folder / "plan" / "plan.json", StoreLayout(folder / "store")
    _without_vllm(plan)
    roads = {stage: name for name, stage in ROADS.items()}
    for job in json.loads(plan.read_text(encoding="utf-8"))["jobs"]:
        words = ["--plan", str(plan), "--store", str(store.root), "--job", job["id"]]
        if job["stage"] in ("wide", "report"):
            _stand_in(store, job)
        elif job["stage"] not in roads:
            _run([sys.executable, "-m", "agentc.runtime.job", *words])
        else:
            road = roads[job["stage"]]
            _watched(folder / road, "job", *words, fails=road == "tensor_parallel")
    return tuple(
        Road(
            name=name,
            compiling=compiling[name],
            wrapper=_read(folder / name, "job.json")[name],
            program=_read(folder / name, "agentc*.json")[name],
        )
        for name in MARKERS
    )


def watch_compile(folder: Path) -> Seen:
    """What each module sees of the values while `agentc bundle --bare` writes a plan."""
    _watched(folder / "compile", "compile", str(HERE / "spec.yaml"), "-o", str(folder / "plan"))
    return _read(folder / "compile", "compile.json")


def _without_vllm(plan: Path) -> None:
    """vLLM's software stack becomes an empty one: its server ends at its first import, which
    is behind what agentc does."""
    document = json.loads(plan.read_text(encoding="utf-8"))
    entry = document["software"]["vllm-cuda"]
    entry["lock"] = lock_digest(_EMPTY)
    (plan.parent / entry["file"]).write_text(_EMPTY, encoding="utf-8")
    plan.write_text(json.dumps(document, indent=2), encoding="utf-8")


def _stand_in(store: StoreLayout, job: Mapping[str, Any]) -> None:
    """Publish an object with nothing in it: what reads it never comes so far."""
    name = f"{job['kind']}/{job['key']}"
    store.data(name).mkdir(parents=True)
    store.manifest(name).write_text("{}", encoding="utf-8")


def _watched(notes: Path, *words: str, fails: bool = False) -> None:
    notes.mkdir(parents=True)
    (notes / "markers.json").write_text(json.dumps(MARKERS), encoding="utf-8")
    command = [sys.executable, str(HERE / "watched.py"), str(notes)]
    _run([*command, *words], fails=fails)


def _run(command: list[str], *, fails: bool = False) -> None:
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    if (done.returncode != 0) is not fails:
        raise RuntimeError(f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")


def _read(notes: Path, pattern: str) -> Seen:
    merged: Seen = {name: {} for name in MARKERS}
    for path in sorted(notes.glob(pattern)):
        for name, modules in json.loads(path.read_text(encoding="utf-8")).items():
            for module, how in modules.items():
                if merged[name].get(module) != "hand":
                    merged[name][module] = how
    return merged
