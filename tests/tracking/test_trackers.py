"""Each tracker that ships, with its real library: a recorded run that is cut off and resumed is
handed to its program, and its own reader must find every point once. `make software-trackers`
builds what they need."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S
from tests.tracking.recorded_run import LABEL, PROJECT, RecordedRun

from agentc.backend_api import installed_trackers
from agentc.runtime.store.layout import StoreLayout
from agentc.tracking.choice import ChosenTracker
from agentc.tracking.trackers import Followed, TrackerProcess

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
READERS = Path(__file__).with_name("readers")
CASES = ("trackio", "tensorboard", "wandb", "mlflow", "mlflow files")


class Tracked:
    """A recorded run and a tracker that it is written to."""

    def __init__(self, case: str, folder: Path) -> None:
        self.name, _, files = case.partition(" ")
        self.run, self.folder = RecordedRun(folder), folder / "tracker"
        tracker = installed_trackers()[self.name]
        settings = {"dir": str(self.folder)}
        if self.name == "mlflow":
            self.uri = f"file:{self.folder}" if files else f"sqlite:///{folder}/mlflow.db"
            settings = {"uri": self.uri}
        self.chosen = ChosenTracker(tracker=tracker, settings=settings, secrets={})
        self.said: list[str] = []
        software = self.chosen.needed
        if not software.ready(self.run.layout):
            pytest.skip(f"the software stack {software.name} is not built")
        self.python = software.directory(self.run.layout) / "bin" / "python"

    def follow(self) -> int:
        """One process of the tracker, from its start to its end; how many values it wrote."""
        followed = Followed(
            layout=self.run.layout, plan=self.run.plan, label=LABEL, project=PROJECT
        )
        program = TrackerProcess(self.chosen, followed, self.said.append)
        program.finish()
        status = program.wait(PATIENCE_S)
        assert status == 0, program.log.read_text()
        return int(self.said[-1].split()[0])

    def read(self) -> dict[str, Any]:
        """What the tracker's reader finds, by the run's name."""
        place = self.uri if self.name == "mlflow" else str(self.folder)
        argv = [self.python, READERS / f"{self.name}_reader.py", PROJECT, place]
        paths = os.pathsep.join(str(ROOT / part) for part in ("compiler", "backends"))
        done = subprocess.run(
            argv, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


@pytest.fixture(params=CASES)
def tracked(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Tracked]:
    built = os.environ.get("AGENTC_SOFTWARE", str(ROOT / ".agentc" / "software"))
    monkeypatch.setenv("AGENTC_SOFTWARE", built)
    yield Tracked(request.param, tmp_path)
    written = tmp_path / "store"
    assert not (written / "objects" / "tmp").exists()


def test_every_point_is_there_once(tracked: Tracked) -> None:
    run = tracked.run
    assert tracked.follow() == 0
    run.train_until_cut_off()
    run.play(2)
    first = tracked.follow()
    assert first > 0
    run.resume()
    run.play(4)
    for job in ("sft@seed=0", "online"):
        run.publish(job)
    run.publish_results()
    assert tracked.follow() > first
    assert tracked.follow() == 0
    before = _files(run.layout)

    found = tracked.read()
    assert len(found) == 3
    training = _named(found, "sft")
    _same(training["points"], run.expected(), tracked.name)
    online = _named(found, "online")["points"]
    assert sorted(step for step, _ in online["return/mean"]) == [0, 1, 2, 3]
    results = _named(found, "results")
    assert sorted(step for step, _ in results["points"]["eto.evaluate/reward"]) == [1, 2]
    assert "reproduced" in json.dumps(results["texts"])
    assert "smoke" in json.dumps(training["config"])
    assert _files(run.layout) == before


def _named(found: Mapping[str, Any], word: str) -> Any:
    (name,) = (name for name in found if f"/{word}" in name)
    return found[name]


def _same(found: Mapping[str, Any], expected: Mapping[str, Any], tracker: str) -> None:
    """Every metric has these points, in single precision where the tracker keeps no more."""
    assert found.keys() == expected.keys()
    for name, points in expected.items():
        assert len(found[name]) == len(points), f"{name} has a point twice, or lacks one"
        for step, value in found[name]:
            kept = points[step]
            if tracker == "mlflow" and abs(kept) == float("inf"):
                # Its databases hold the largest number in place of an infinite one.
                assert abs(value) >= 1.7e308
                assert value * kept > 0
            else:
                assert value == pytest.approx(kept, rel=1e-6, nan_ok=True)


def _files(layout: StoreLayout) -> set[str]:
    """What is staged and published: a tracker writes nothing there."""
    return {
        str(path) for part in ("objects", "staging") for path in (layout.root / part).rglob("*")
    }
