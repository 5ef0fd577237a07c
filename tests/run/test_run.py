"""Running whole plans with real Snakemake: order, skipping, failing, records, concurrency."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.pace import least
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan

from agentc.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture
def diamond(plan: TinyPlan) -> TinyPlan:
    """A model, two rollouts of it in a session, and something over both."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    lease = plan.lease()
    for name in ("left", "right"):
        plan.job(name, inputs={"model": ["model"]}, leases=[lease], call=True, say=name)
    plan.session("both", "left", "right")
    plan.job("join", inputs={"rollouts": ["left", "right"]}, kind="pair")
    return plan


def history(plan: TinyPlan) -> list[dict[str, object]]:
    lines = (plan.store / "runs" / plan.name / "history.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_runs_everything_once_then_nothing_and_then_what_follows_from_a_change(
    diamond: TinyPlan,
) -> None:
    folder = str(diamond.store / "own-environments")
    done = diamond.run_all(AGENTC_SOFTWARE=folder)
    assert done.returncode == 0, done.stderr
    assert "4 jobs to run, 0 results in the store already" in done.stdout
    assert "building 1 software stack: empty" in done.stdout
    assert len([entry for entry in Path(folder).iterdir() if not entry.suffix]) == 1
    for name in ("model", "left", "right", "join", "both"):
        assert diamond.published(name)
    again = diamond.run_all()
    assert again.returncode == 0
    assert "nothing to do, 4 results in the store already" in again.stdout
    first, second = history(diamond)
    assert [job["id"] for job in first["ran"]] == ["model", "left", "right", "join"]  # type: ignore[attr-defined,index]
    assert (first["reused"], second["ran"]) == ([], [])
    assert second["reused"] == ["model", "left", "right", "join"]
    model = diamond.manifest("model")["started"]
    changed = TinyPlan(diamond.folder.parent)
    changed.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    for name in ("left", "right"):
        changed.job(
            name, inputs={"model": ["model"]}, leases=[changed.lease()], call=True,
            say=name if name == "left" else "changed",
        )  # fmt: skip
    changed.session("both", "left", "right")
    changed.job("join", inputs={"rollouts": ["left", "right"]}, kind="pair")
    done = changed.run_all()
    assert done.returncode == 0, done.stderr
    assert "2 jobs to run, 2 results in the store already" in done.stdout
    assert changed.manifest("model")["started"] == model
    runs = changed.store / "runs" / "tiny"
    assert json.loads((runs / "last-plan.json").read_text()) == changed.document()
    assert json.loads((runs / "previous-plan.json").read_text()) == diamond.document()


@pytest.mark.alone
def test_run_with_nothing_to_do_takes_less_than_a_second(diamond: TinyPlan) -> None:
    assert diamond.run_all().returncode == 0

    def seconds() -> float:
        began = time.monotonic()
        assert diamond.run_all().returncode == 0
        return time.monotonic() - began

    assert least(seconds, 1.0) < 1.0


def test_failure_shows_the_log_and_stops_what_follows(diamond: TinyPlan) -> None:
    diamond.jobs[2]["config"]["exit"] = 9
    done = diamond.run_all()
    assert done.returncode == 3
    assert "right failed: its program exited with 9" in done.stderr
    assert "  | about to fail" in done.stderr
    log = diamond.staging("right") / "logs" / "log.txt"
    assert f"log: {log}" in done.stderr
    assert "snakemake.log" in done.stderr
    assert diamond.published("left")
    assert not diamond.published("join")
    assert "Traceback" not in done.stderr + done.stdout
    (entry,) = history(diamond)
    assert entry["failed"] == ["right"]
    assert entry["exit"] == 3
    diamond.jobs[2]["config"]["exit"] = 0
    done = diamond.run_all()
    assert done.returncode == 0, done.stderr


def test_keep_going_finishes_the_other_branch(plan: TinyPlan) -> None:
    plan.job("bad", rows=1, exit=1)
    plan.job("good", kind="expert")
    plan.job("after", inputs={"x": ["good"]}, kind="pair")
    done = plan.run_all("keep-going")
    assert done.returncode == 3
    assert plan.published("after")


def test_object_that_appears_meanwhile_is_not_touched(plan: TinyPlan) -> None:
    """Snakemake deletes the outputs of a job before it starts it; somebody else may have made
    this one since the run began."""
    plan.job("first", rows=10, delay=0.2)
    plan.job("second", inputs={"x": ["first"]}, kind="pair")
    process = subprocess.Popen(plan.run_all_argv(), stdout=subprocess.PIPE, text=True)
    wait_for(lambda: plan.status("first").get("state") == "running")
    made_elsewhere = plan.store / "objects" / plan.object("second")
    (made_elsewhere / "data").mkdir(parents=True)
    (made_elsewhere / "artifact.json").write_text('{"made": "elsewhere"}')
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert (made_elsewhere / "artifact.json").read_text() == '{"made": "elsewhere"}'


def test_shipped_profile_and_driver_agree(tmp_path: Path) -> None:
    """`agentc run` passes by hand what the profile says to those who run Snakemake themselves."""
    import yaml

    from agentc import resources
    from agentc.run.snakemake_process import DriverOptions, driver_argv
    from agentc.runtime.store.layout import StoreLayout

    said = yaml.safe_load((resources.profile("local") / "config.yaml").read_text())
    options = DriverOptions(jobs=1, keep_going=True)
    argv = " ".join(driver_argv(tmp_path, StoreLayout(tmp_path), [], options))
    for name, value in said.items():
        written = f"--{name}" if value is True else f"--{name} {value}"
        assert written in argv


def test_status_tells_where_a_run_stands(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.job("first", rows=100, hold_after=5)
    plan.job("second", inputs={"x": ["first"]}, kind="pair")
    process = subprocess.Popen(plan.run_all_argv(), stdout=subprocess.DEVNULL)
    wait_for(lambda: (plan.staging("first") / "progress.json").exists())
    time.sleep(0.3)
    assert main(["status", "--store", str(plan.store)]) == 0
    shown = capsys.readouterr().out
    assert "tiny: 0 of 2 jobs are done" in shown
    assert "first   running, " in shown
    assert "/100 rows" in shown
    assert "second  waiting" in shown
    process.terminate()
    assert process.wait(timeout=PATIENCE_S) == 128 + 15
    # Whoever stopped it knows: no job failed.
    assert main(["status", "tiny", "--store", str(plan.store), "--json"]) == 0
    states = [json.loads(line)["state"] for line in capsys.readouterr().out.splitlines()]
    assert states == ["failed", "waiting"]
    assert main(["status", "tinny", "--store", str(plan.store)]) == 5
    assert "tiny" in capsys.readouterr().err


def test_without_snakemake_nothing_is_built_first(plan: TinyPlan, tmp_path: Path) -> None:
    plan.job("first", rows=1)
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['snakemake'] = None\n")
    folder = plan.store / "own-environments"
    done = plan.run_all(AGENTC_SOFTWARE=str(folder), PYTHONPATH=str(tmp_path))
    assert done.returncode == 3
    assert "pip install" in done.stderr
    assert "building" not in done.stdout
    assert not folder.exists()


def test_snakemake_trouble_is_shown(plan: TinyPlan) -> None:
    plan.job("first", rows=1)
    argv = plan.run_all_argv()
    (plan.folder / "Snakefile").write_text("raise RuntimeError('the disk is on fire')\n")
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 3
    assert "Snakemake stopped without finishing" in done.stderr
    assert "the disk is on fire" in done.stderr
