"""The stages of `tests/end_to_end/online_runs.yaml` as runs of `agentc run`: undisturbed ones, and
the same ones again in other stores. Neighbours: online_kills.py, run_digests.py."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smoke import agentc

from agentc.program.job import read_rows

SPEC = Path(__file__).parents[1] / "end_to_end" / "online_runs.yaml"
BEFORE = "start"
"""The stage that all of them start from."""


@dataclass(frozen=True, slots=True)
class OnlineJob:
    """The job of a stage in a store, by its object. `words` are further ones of the command."""

    stage: str
    store: Path
    object: str
    words: Sequence[str | Path] = ()

    @property
    def staging(self) -> Path:
        return self.store / "staging" / self.object

    @property
    def folder(self) -> Path:
        """Where it is published."""
        return self.store / "objects" / self.object

    @property
    def manifest(self) -> Any:
        return json.loads((self.folder / "artifact.json").read_text(encoding="utf-8"))

    def start(self, said: Path, **variables: str) -> subprocess.Popen[bytes]:
        """`agentc run` until the stage is there, its output to the end of a file."""
        argv = [str(Path(sys.executable).with_name("agentc")), "run", str(SPEC), "--plain"]
        argv += ["--store", str(self.store), "--until", self.stage, *map(str, self.words)]
        with said.open("ab") as out:
            return subprocess.Popen(
                argv, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **variables}
            )

    def again(self, folder: Path, *words: str | Path) -> OnlineJob:
        """The same run in a new store, which has what it starts from."""
        store = folder / "store"
        for kind in (self.store / "objects").iterdir():
            if kind.name != "online_rl":
                shutil.copytree(kind, store / "objects" / kind.name)
        return replace(self, store=store, words=(*self.words, *words))


@dataclass(frozen=True, slots=True)
class Calm:
    """An undisturbed run, and its seconds: those of all phases, and what it takes besides."""

    job: OnlineJob
    phases_s: float
    rest_s: float

    @property
    def whole_s(self) -> float:
        return self.phases_s + self.rest_s


def calm_run(store: Path, stage: str, *words: str) -> Calm:
    """Run a stage to its end."""
    agentc("run", SPEC, "--plain", "--store", store, "--until", BEFORE)
    known = set(store.glob("objects/online_rl/*"))
    began = time.monotonic()
    agentc("run", SPEC, "--plain", "--store", store, "--until", stage, *words)
    whole = time.monotonic() - began
    (made,) = set(store.glob("objects/online_rl/*")) - known
    rows = read_rows(made / "data" / "curve.jsonl")
    phases = math.fsum(sum(row["seconds"].values()) for row in rows)
    job = OnlineJob(stage, store, f"online_rl/{made.name}", words)
    return Calm(job, phases, whole - phases)
