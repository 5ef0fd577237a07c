"""`agentc logs`: of real jobs and their servers, while they run and later."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S
from tests.support.tiny_plan import TinyPlan

from agentc.cli import main


@pytest.fixture
def plan(tmp_path: Path) -> TinyPlan:
    return TinyPlan(tmp_path)


def record(plan: TinyPlan) -> None:
    """The plan is that of the last run."""
    runs = plan.store / "runs" / "tiny"
    runs.mkdir(parents=True, exist_ok=True)
    shutil.copy(plan.path, runs / "last-plan.json")


def logs(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, list[str], str]:
    """The exit code, the lines on standard output, and the text on standard error."""
    capsys.readouterr()
    code = main(["logs", *words, "--store", str(plan.store)])
    shown = capsys.readouterr()
    return code, shown.out.splitlines(), shown.err


def test_a_job_and_its_server(plan: TinyPlan, capsys: pytest.CaptureFixture[str]) -> None:
    plan.job("base", "checkpoint.py", kind="model", produces="Checkpoint", seed=7)
    plan.job("rows", inputs={"model": ["base"]}, leases=[plan.lease()], rows=2, say="hello")
    for name in ("base", "rows"):
        assert plan.run(name).returncode == 0
    record(plan)
    code, lines, errors = logs(plan, capsys, "rows")
    assert (code, lines) == (0, ["hello"])
    log = plan.store / "objects" / plan.object("rows") / "logs" / "log.txt"
    assert errors == f"agentc: {log}\n"
    code, lines, errors = logs(plan, capsys, "rows", "--server")
    assert (code, bool(lines)) == (0, True)
    assert errors == f"agentc: {log.with_name('policy.log')}\n"
    assert logs(plan, capsys, "--server", "rows")[1] == lines, "the name behind the option"
    assert logs(plan, capsys, "rows", "--server", "policy")[1] == lines
    code, _, errors = logs(plan, capsys, "rows", "--server", "polcy")
    assert (code, "did you mean `policy`?" in errors) == (5, True)
    code, lines, errors = logs(plan, capsys, "base")
    assert (code, lines) == (0, [])
    assert "the program of base has printed nothing: done in " in errors
    code, _, errors = logs(plan, capsys, "base", "--server")
    assert (code, "base has no log of a server" in errors) == (5, True)


def test_names_that_mean_several_jobs(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for seed in (0, 1):
        plan.job(f"sft@seed={seed}", say=f"seed {seed}")
    plan.job("later", inputs={"model": ["sft@seed=0"]})
    assert plan.run("sft@seed=0").returncode == 0
    record(plan)
    code, lines, _ = logs(plan, capsys, "sft")
    assert code == 0
    assert [line.split()[:2] for line in lines[:2]] == [
        ["sft@seed=0", "done"],
        ["sft@seed=1", "waiting"],
    ]
    assert lines[2] == "`agentc logs sft@seed=0` prints one of them"
    assert logs(plan, capsys, "sft@seed=0")[1] == ["seed 0"]
    code, _, errors = logs(plan, capsys, "later")
    assert (code, errors) == (5, "agentc: later has no log: it has not been started\n")
    code, _, errors = logs(plan, capsys, "sfx")
    assert (code, "did you mean `sft`?" in errors) == (5, True)
    code, _, errors = logs(plan, capsys, "sft", "later")
    assert (code, "name one stage or job" in errors) == (2, True)


def test_server_logs_of_a_stage_are_of_its_job_with_servers(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.job("base", "checkpoint.py", kind="model", produces="Checkpoint", seed=7)
    rollout = plan.job("eval:rollout", inputs={"model": ["base"]}, leases=[plan.lease()])
    rollout["stage"] = "eval"
    plan.job("eval", inputs={"data": ["eval:rollout"]})
    for name in ("base", "eval:rollout", "eval"):
        assert plan.run(name).returncode == 0
    record(plan)
    code, lines, errors = logs(plan, capsys, "eval", "--server")
    assert (code, bool(lines)) == (0, True), errors
    assert "policy.log" in errors


def test_the_latest_attempt_of_the_job_that_failed(
    plan: TinyPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.job("a@seed=0")
    plan.job("a@seed=1", say="trying", exit=3)
    assert plan.run("a@seed=0").returncode == 0
    for _ in range(2):
        assert plan.run("a@seed=1").returncode != 0
    record(plan)
    code, lines, errors = logs(plan, capsys, "a")
    assert (code, lines.count("trying")) == (0, 1)
    assert "`a` is 2 jobs; this is a@seed=1" in errors
    _, lines, _ = logs(plan, capsys, "a@seed=1", "--all-attempts")
    assert lines.count("trying") == 2


def test_a_running_job_is_followed_to_its_end(plan: TinyPlan, tmp_path: Path) -> None:
    signal = tmp_path / "continue"
    plan.job("slow", rows=4, say="started", go_on=str(signal))
    wrapper = plan.start("slow")
    record(plan)
    words = [sys.executable, "-m", "agentc", "logs", "slow", "-f", "--store", str(plan.store)]
    log = plan.store / "staging" / plan.object("slow") / "logs" / "log.txt"
    deadline = time.monotonic() + PATIENCE_S
    while not log.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "started\n", "while the job runs"
        with log.open("a") as file:
            file.write("loss 0.4\n")
        assert follower.stdout.readline() == "loss 0.4\n", "what is added"
        log.with_name("steps.jsonl").write_text('{"lr": 0.00123456, "loss": 2.9, "step": 3}\n')
        assert follower.stdout.readline() == "step 3: loss 2.9, lr 0.001235\n"
        assert wrapper.poll() is None
        signal.touch()
        assert follower.stdout.read() == ""
        assert follower.wait(PATIENCE_S) == 0
    assert wrapper.wait(PATIENCE_S) == 0
    assert plan.published("slow")
