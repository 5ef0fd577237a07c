"""Trackers beside a run, with a tracker of somebody else's: its program in a software stack,
followed while files grow; one that fails or hangs ends nothing, and secrets are in no file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.patience import wait_for
from tests.tracking.recorded_run import CUT, LABEL, PROJECT, RecordedRun

from agentc.backend_api import Software, Tracker
from agentc.tracking.choice import ChosenTracker
from agentc.tracking.trackers import Followed, Trackers

PROGRAM = '''\
"""A tracker in 40 lines: a line of JSON for each step, in a file."""
import json, os, sys, time
from agentc.runtime.tracking import program

class Lines:
    def __init__(self, settings):
        self.settings = settings
        self.file = open(settings["dir"], "a")
    def open(self, run):
        if self.settings.get("trouble") == "raise":
            print("its key is", os.environ.get("THEIR_KEY"), file=sys.stderr)
            raise RuntimeError("no such account")
        if self.settings.get("trouble") == "hang":
            time.sleep(1000)
        return {}
    def log(self, run, step, numbers):
        print(json.dumps([run.name, step, dict(numbers)]), file=self.file)
    def send_text(self, run, title, text, words):
        pass
    def finish(self, run):
        pass
    def flush(self):
        self.file.flush()
    def close(self):
        self.file.close()

def make(settings, folder, say):
    say("writes as %d" % os.getpid())
    return Lines(settings)

sys.exit(program.main(make))
'''


@pytest.fixture
def run(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> RecordedRun:
    (tmp_path / "their_tracker.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("AGENTC_SOFTWARE", str(tmp_path / "software"))
    monkeypatch.setenv("MY_KEY", "very-secret-0123456789")
    return RecordedRun(tmp_path)


def start(run: RecordedRun, patience: float | None = 60.0, **settings: str) -> Trackers:
    software = Software(name="empty", lock="# a stack without packages\n")
    tracker = Tracker(id="theirs", doc="", software=software, program="their_tracker")
    place = str(run.plan.with_name("lines.jsonl"))
    chosen = ChosenTracker(
        tracker=tracker, settings={"dir": place, **settings}, secrets={"THEIR_KEY": "MY_KEY"}
    )
    followed = Followed(layout=run.layout, plan=run.plan, label=LABEL, project=PROJECT)
    return Trackers([chosen], followed, patience)


def steps(run: RecordedRun) -> list[int]:
    place = run.plan.with_name("lines.jsonl")
    rows = [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []
    return [step for name, step, _ in rows if "/sft" in name]


def test_points_are_there_while_the_job_runs(run: RecordedRun) -> None:
    trackers = start(run)
    run.train_until_cut_off()
    wait_for(lambda: len(steps(run)) == CUT - 1)
    run.resume()
    wait_for(lambda: len(steps(run)) == len(run.steps))
    run.publish("sft@seed=0")
    said = list(trackers.finish())
    assert sorted(steps(run)) == [row["step"] for row in run.steps]
    assert "values written" in said[-1]
    assert trackers.failed == ()


def test_a_tracker_that_fails_is_told_once(run: RecordedRun) -> None:
    trackers = start(run, trouble="raise")
    run.train_until_cut_off()
    told: list[str] = []
    wait_for(lambda: bool(trackers.failed))
    told += trackers.news()
    time.sleep(0.3)
    told += trackers.finish()
    (failed,) = [line for line in told if "failed" in line]
    assert "the run continues without it: RuntimeError: no such account" in failed
    assert f"`agentc track {LABEL} --to theirs` writes what is missing" in failed
    # Its library printed the key; the log, which people are pointed at, does not have it.
    log = run.layout.root / "runs" / LABEL / "track-theirs.log"
    assert "its key is [redacted]" in log.read_text()
    written = (path for path in run.plan.parent.rglob("*") if path.is_file())
    assert not [path for path in written if b"very-secret" in path.read_bytes()]


def test_a_tracker_that_hangs_holds_no_run(run: RecordedRun) -> None:
    trackers = start(run, patience=0.5, trouble="hang")
    run.train_until_cut_off()
    told = _until_it_began(trackers)
    told += trackers.finish()
    assert any("it was still writing" in line for line in told)
    pid = int(told[0].rpartition(" ")[2]) if "writes as" in told[0] else 0
    assert pid
    assert not Path(f"/proc/{pid}").exists()


def _until_it_began(trackers: Trackers) -> list[str]:
    told: list[str] = []

    def began() -> bool:
        told.extend(line for line in trackers.news() if "writes as" in line)
        return bool(told)

    wait_for(began)
    return told


def test_software_that_cannot_be_built_is_told(run: RecordedRun) -> None:
    software = Software(name="none", lock="no-such-package==1.0\n")
    tracker = Tracker(id="theirs", doc="", software=software, program="their_tracker")
    chosen = ChosenTracker(tracker=tracker, settings={}, secrets={})
    followed = Followed(layout=run.layout, plan=run.plan, label=LABEL, project=PROJECT)
    told = list(Trackers([chosen], followed).finish())
    assert "failed, and the run continues without it" in told[-1]


STARTER = """
import os, signal, sys, time
from pathlib import Path
sys.path[:0] = {paths!r}
from tests.tracking.recorded_run import RecordedRun
from tests.tracking.test_beside_a_run import start

trackers = start(RecordedRun(Path(sys.argv[1]) / "killed"))
told = []
while not told:
    time.sleep(0.05)
    told = [line for line in trackers.news() if "writes as" in line]
print(told[0].rpartition(" ")[2], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_tracker_ends_by_itself_when_its_run_was_killed(run: RecordedRun) -> None:
    folder = run.plan.parent
    root = Path(__file__).resolve().parents[2]
    paths = [str(folder), str(root), str(root / "tests" / "support")]
    code = STARTER.format(paths=paths)
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = int(done.stdout)
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
