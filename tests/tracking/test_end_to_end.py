"""`agentc run --track trackio` at the quickstart's smoke scale, with real trainers and servers:
trackio has at the end what the store has, and a second run adds nothing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.smoke import agentc, require_software

from agentc.backend_api import installed_trackers
from agentc.runtime.store.layout import StoreLayout
from agentc.software.requirements import needed_by_tracker

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
READER = Path(__file__).with_name("readers") / "trackio_reader.py"


def test_a_smoke_run_is_tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = os.environ.get("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    monkeypatch.setenv("AGENTC_SOFTWARE", built)
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    require_software("trl.sft")
    layout = StoreLayout(tmp_path / "store")
    software = needed_by_tracker(installed_trackers()["trackio"])
    if not software.ready(layout):
        pytest.skip("the software stack trackio is not built")
    spec = ROOT / "specs" / "quickstart.yaml"
    words = ("run", spec, "--scale", "smoke", "--store", layout.root, "--plain")
    told = agentc(*words, "--track", "trackio")
    assert f"shows what is in {tmp_path}/trackio" in told
    assert "values written" in told

    found = _read(software.directory(layout) / "bin" / "python", tmp_path / "trackio")
    trained = sorted(layout.root.glob("objects/*/*/logs/steps.jsonl"))
    assert len(found) == len(trained) + 1
    for log in trained:
        key = log.parent.parent.name
        (run,) = (each for name, each in found.items() if name.endswith(key[:6]))
        losses = [
            [row["step"], row["loss"]] for row in map(json.loads, log.read_text().splitlines())
        ]
        assert sorted(run["points"]["loss"]) == losses
        assert run["config"]["object"].endswith(key)
    (results,) = (each for name, each in found.items() if "/results" in name)
    assert [step for step, _ in results["points"]["eto.evaluate/reward"]] == [1, 2]
    assert "| claim |" in results["texts"]["claims"]

    again = agentc(*words, "--track", "trackio")
    assert "nothing to do" in again
    assert "trackio: 0 values written" in again


def _read(python: Path, folder: Path) -> dict[str, Any]:
    argv = [python, READER, "quickstart", folder]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
