"""The small experiment of a trainer that has software of its own: run once as a whole, and training
jobs of it that tests start again by hand. Neighbour: `training_job.py`, how those end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from smoke import agentc
from training_job import ROOT, variables

from agentc.backend_api import Software
from agentc.runtime.software.lock_text import lock_digest

ITEMS = ("planks", "stick", "bowl", "ladder")


@dataclass(frozen=True, slots=True)
class Experiment:
    """The finished run: its store, and the published object of each kind."""

    store: Path

    def place(self, kind: str) -> Path:
        (found,) = (self.store / "objects" / kind).iterdir()
        return found

    def manifest(self, kind: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.place(kind) / "artifact.json").read_text())
        return value


def conversation(number: int) -> list[dict[str, Any]]:
    """A task with two replies; in every other one the first is marked as not trained."""
    item = ITEMS[number % 4]
    first = {"role": "assistant", "content": f"Thought: a mistake. Action: get {number} {item}"}
    if number % 2:
        first["loss"] = False  # type: ignore[assignment]
    return [
        {"role": "user", "content": f"Craft the goal.\n\nGoal: craft {item}."},
        first,
        {"role": "user", "content": f"Could not find {item}"},
        {"role": "assistant", "content": f"Thought: that was wrong. Action: craft 1 {item}"},
    ]


def interpreter(software: Software, spec: Path) -> Path:
    """That of a software stack; the test is skipped where it is not built, and says which
    spec builds it."""
    folder = Path(os.environ.get("AGENTC_SOFTWARE", ROOT / ".agentc" / "software"))
    digest = lock_digest(software.text)[:16]
    if not (folder / digest / "complete.json").exists():
        pytest.skip(
            f"the software stack `{software.name}` ({digest}) is not built in {folder}; "
            f"`agentc software sync {spec.relative_to(ROOT)}` builds it"
        )
    os.environ["AGENTC_SOFTWARE"] = str(folder)
    return folder / digest / "bin" / "python"


def run_experiment(spec: Path, folder: Path) -> Experiment:
    """Run a copy of the spec, whose dataset is sixteen conversations."""
    rows = [json.dumps({"messages": conversation(number)}) for number in range(16)]
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n")
    shutil.copyfile(spec, folder / spec.name)
    agentc("run", folder / spec.name, "--store", folder / "store", "--plain")
    return Experiment(folder / "store")


def start_job(
    python: Path,
    program: str,
    staging: Path,
    *,
    kind: str,
    config: Mapping[str, Any],
    inputs: Mapping[str, Sequence[Path]],
    processes: int = 1,
    time_left: float | None = None,
) -> subprocess.Popen[str]:
    """Start a training program; a second start in the same staging folder continues the first."""
    for folder in ("data", "work", "logs"):
        (staging / folder).mkdir(parents=True, exist_ok=True)
    job = {
        "id": staging.name, "key": "0", "kind": kind, "config": config,
        "placement": {"processes": processes},
        "inputs": {role: list(map(str, places)) for role, places in inputs.items()},
        "leases": {},
        **{part: str(staging / part) for part in ("work", "logs")},
        "out": str(staging / "data"),
        "facts": str(staging / "facts.json"),
        "progress": str(staging / "progress.json"),
        "stop_by": None if time_left is None else time.time() + time_left,
    }  # fmt: skip
    (staging / "job.json").write_text(json.dumps(job))
    return subprocess.Popen(
        [python, "-m", program, staging / "job.json"],
        cwd=staging,
        env=variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
