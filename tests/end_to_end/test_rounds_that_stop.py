"""A run whose rounds stop, with real jobs and no model: killed between rounds, gone on with; what
it leaves is what the experiment of so many rounds would have left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from smoke import agentc, starts
from tests.support.patience import PATIENCE_S

from agentc.cli import main

pytestmark = pytest.mark.slow

SUMMIT = Path(__file__).resolve().parents[2] / "specs" / "search" / "summit.yaml"


def written(folder: Path, n: int, until: object) -> Path:
    """The shipped spec with another number of rounds and another rule."""
    spec = yaml.safe_load(SUMMIT.read_text(encoding="utf-8"))
    repeat = spec["stages"]["climb"]["repeat"]
    repeat["n"] = n
    del repeat["until"]
    if until is not None:
        repeat["until"] = until
    folder.mkdir()
    for script in SUMMIT.parent.glob("*.py"):
        (folder / script.name).write_bytes(script.read_bytes())
    (folder / SUMMIT.name).write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return folder / SUMMIT.name


def test_a_run_stops_and_goes_on_after_a_kill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*words: str | Path) -> str:
        capsys.readouterr()
        assert main([*map(str, words), "--store", str(store)]) == 0
        return capsys.readouterr().out

    def plan(spec: Path) -> dict[str, str]:
        """The objects of a plan by job that are in the store."""
        jobs = json.loads(printed("plan", spec, "--all", "--json"))["jobs"]
        return {job["id"]: job["object"] for job in jobs if job["state"] == "cached"}

    spec = written(tmp_path / "until", 5, {"stage": "height", "reaches": 0.6})
    store = tmp_path / "store"
    words = [str(Path(sys.executable).with_name("agentc")), "run", str(spec)]
    words += ["--store", str(store), "--plain"]
    killed = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert killed.stdout is not None
    deadline = time.monotonic() + PATIENCE_S
    for line in killed.stdout:
        assert time.monotonic() < deadline
        if "after round 1: reward 0." in line:
            break
    os.killpg(killed.pid, signal.SIGKILL)
    killed.stdout.close()
    killed.wait()
    first = starts(store)
    assert first

    said = agentc("run", spec, "--store", store, "--plain")
    assert "up to 5 rounds, until reward reaches 0.6; after round 1: reward 0." in said
    assert "climb: up to 5 rounds; stopped after 2: reward 0.7041 reached 0.6" in said
    there = starts(store)
    assert {name: there[name] for name in first} == first, "what was there ran again"

    # All of what the experiment of two rounds has, and nothing else.
    fixed = written(tmp_path / "fixed", 2, None)
    assert set(plan(fixed).values()) == set(there)
    assert plan(spec) == plan(fixed)
    for command in ("plan", "plan --cost", "status"):
        assert "stopped after 2" in printed(*command.split(), spec)

    # A rule that does not hold goes on from there to the last round.
    never = written(tmp_path / "never", 3, {"stage": "height", "reaches": 0.9})
    said = agentc("run", never, "--store", store, "--plain", "--until", "climb.height")
    assert "climb: all 3 rounds; reward 0.8106, which did not reach 0.9" in said
    made = set(starts(store)) - set(there)
    assert made == {name for job, name in plan(never).items() if job.startswith("climb.3.")}
