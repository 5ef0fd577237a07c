"""What the benches share: a scratch folder, the commands of agentc, and the software stacks.

Neighbours: `processes.py` runs and times; `reduced.py` writes the spec that most benches use.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.processes import Cost, measure
from benchmarks.reduced import ROOT, Size, write_reduced


@dataclass(slots=True)
class Workplace:
    """A scratch folder of one run of the benchmarks."""

    folder: Path
    _runs: int = field(default=0)
    _finished: tuple[Path, Cost] | None = field(default=None)

    def agentc(self, *words: str) -> Cost:
        """Run an `agentc` command. Raises CommandError when it fails."""
        return self.run([str(Path(sys.executable).with_name("agentc")), *words])

    def job(self, plan: Path, store: Path, name: str) -> Cost:
        """Run one job of a plan through its wrapper, outside of any session."""
        argv = [sys.executable, "-m", "agentc.runtime.job"]
        return self.run([*argv, "--plan", str(plan), "--store", str(store), "--job", name])

    def run(
        self, argv: list[str], cwd: Path = ROOT, *, limit_s: float | None = None, **variables: str
    ) -> Cost:
        """Run and time a command, from the top of the repository unless told otherwise."""
        self._runs += 1
        log = self.folder / f"{self._runs:03}.log"
        variables = {"NO_COLOR": "1", **variables}
        return measure(argv, cwd=cwd, variables=variables, log=log, limit_s=limit_s)

    def reduced(self, name: str, size: Size) -> tuple[Path, Path]:
        """Paths of a reduced quickstart and of its compiled plan."""
        spec = write_reduced(self.folder / f"{name}.yaml", size)
        self.agentc("bundle", "--bare", str(spec), "-o", str(self.folder / name))
        return spec, self.folder / name / "plan.json"

    def store(self, name: str, *, like: Path | None = None) -> Path:
        """A fresh store; with the objects of another one, as links to the same files."""
        store = self.folder / f"store-{name}"
        if like is None:
            store.mkdir()
        else:
            shutil.copytree(like / "objects", store / "objects", copy_function=os.link)
        return store

    def finished(self) -> tuple[Path, Path, Cost]:
        """The reduced quickstart's spec, the store in which `agentc run` has finished it, and
        what that has cost. It runs once, for all benches that ask."""
        spec = self.folder / "finished.yaml"
        if self._finished is None:
            write_reduced(spec, Size())
            store = self.store("finished")
            self._finished = store, self.agentc("run", str(spec), "--store", str(store), "--plain")
        return spec, *self._finished


def jobs_of(plan: Path) -> list[dict[str, Any]]:
    """Jobs of a compiled plan, in topological order."""
    jobs: list[dict[str, Any]] = json.loads(plan.read_text(encoding="utf-8"))["jobs"]
    return jobs


def object_folder(store: Path, job: dict[str, Any]) -> Path:
    """Where a job's object lies in a store."""
    return store.joinpath("objects", job["kind"], job["key"])


def manifest(store: Path, job: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a job's object."""
    text = (object_folder(store, job) / "artifact.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
