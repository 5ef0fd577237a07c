"""`agentc cancel`: a run of another shell stops as after Ctrl-C, and of a killed one nothing stays.
tests/slurm has the same for runs whose jobs are in a queue."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, drivers_of, processes_of

from agentc.cli import main
from agentc.run.active_runs import active_runs
from agentc.runtime.store.layout import StoreLayout

pytestmark = pytest.mark.slow


def start(plan: TinyPlan) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        plan.run_all_argv(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: plan.status("long").get("state") == "running")
    return process


@pytest.mark.parametrize("killed", [False, True])
def test_cancelled_run_leaves_nothing_and_goes_on_later(
    plan: TinyPlan, killed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.job("long", rows=30, delay=0.1, children=True, resume=True)
    process = start(plan)
    assert [run.pid for run in active_runs(StoreLayout(plan.store))] == [process.pid]
    if killed:
        process.kill()
        process.wait()
    assert main(["cancel", "--store", str(plan.store)]) == 0
    assert "tiny: stopped" in capsys.readouterr().out
    assert process.wait(timeout=PATIENCE_S) == (-signal.SIGKILL if killed else 143)
    wait_for(lambda: not processes_of(plan.store) and not drivers_of(plan.store))
    assert active_runs(StoreLayout(plan.store)) == ()
    assert main(["cancel", "--store", str(plan.store)]) == 5
    done = plan.run_all()
    assert done.returncode == 0, done.stderr


def test_one_of_several_experiments_has_to_be_named(
    plan: TinyPlan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.job("long", rows=600, delay=0.1)
    other = TinyPlan(tmp_path / "other", name="other")
    other.store = plan.store
    other.job("long", rows=600, delay=0.1, say="the other")
    processes = [start(plan), start(other)]
    assert main(["cancel", "--store", str(plan.store)]) == 2
    assert "active runs: other, tiny; name one" in capsys.readouterr().err
    assert main(["cancel", "othr", "--store", str(plan.store)]) == 5
    assert "did you mean `other`" in capsys.readouterr().err
    for name in ("tiny", "other"):
        assert main(["cancel", name, "--store", str(plan.store)]) == 0
    assert [process.wait(timeout=PATIENCE_S) for process in processes] == [143, 143]
