"""kill -9 of every kind of process of a job: nothing is left alive, the store is whole, and the
next run completes."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, processes_of

from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import list_objects, verify_object


@pytest.fixture
def busy(plan: TinyPlan) -> TinyPlan:
    """A rollout with a server; both fork processes that outlive them."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert plan.run("model").returncode == 0
    lease = plan.lease(arguments=["--fork", str(plan.outlived)])
    plan.job(
        "act", inputs={"policy": ["model"]}, leases=[lease], call=True, rows=60, delay=0.05,
        children=True,
    )  # fmt: skip
    return plan


def kill_one(plan: TinyPlan, pattern: str) -> None:
    """Kill the first process of the store whose command line holds the pattern."""
    found = wait_for(lambda: [p for p, c in processes_of(plan.store).items() if pattern in c])
    os.kill(found[0], signal.SIGKILL)


def assert_whole(plan: TinyPlan) -> None:
    """No process is left, and every object is what its manifest says."""
    wait_for(lambda: not processes_of(plan.store))
    found, problems = list_objects(StoreLayout(plan.store))
    assert problems == []
    assert [problem for stored in found for problem in verify_object(stored)] == []


@pytest.mark.slow
def test_killed_wrapper_takes_everything_with_it(busy: TinyPlan) -> None:
    process = busy.start("act")
    wait_for(lambda: busy.status("act").get("state") == "running")
    wait_for(lambda: len(processes_of(busy.store)) >= 6)
    process.kill()
    process.communicate()
    assert_whole(busy)
    assert not busy.published("act")
    assert busy.run("act").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["rows.py", "server.py"])
def test_killed_program_or_server_fails_the_job(busy: TinyPlan, pattern: str) -> None:
    process = busy.start("act")
    wait_for(lambda: busy.status("act").get("state") == "running")
    kill_one(busy, pattern)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "was killed by signal 9" in said
    assert_whole(busy)
    assert busy.run("act").returncode == 0


def test_terminated_wrapper_ends_its_processes(busy: TinyPlan) -> None:
    process = busy.start("act")
    wait_for(lambda: busy.status("act").get("state") == "running")
    process.terminate()
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert "interrupted by SIGTERM" in said
    assert busy.status("act")["state"] == "failed"
    assert_whole(busy)


def test_wrapper_ends_with_its_parent(busy: TinyPlan, tmp_path: Path) -> None:
    busy.write()
    script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *busy.argv("act")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: busy.status("act").get("state") == "running")
    wrapper = busy.status("act")["pid"]
    parent.kill()
    parent.wait()
    wait_for(lambda: not Path(f"/proc/{wrapper}").exists())
    assert_whole(busy)


@pytest.mark.slow
def test_next_wrapper_ends_stragglers_when_wrapper_and_watchdog_die(busy: TinyPlan) -> None:
    process = busy.start("act")
    wait_for(lambda: len(processes_of(busy.store)) >= 6)
    me = str(process.pid)
    children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
    marked = processes_of(busy.store)
    (watchdog,) = [int(child) for child in children if int(child) not in marked]
    process.send_signal(signal.SIGSTOP)  # it would start another watchdog
    os.kill(watchdog, signal.SIGKILL)
    process.kill()
    process.communicate()
    time.sleep(0.2)
    left = processes_of(busy.store)
    assert left, "the point of this test is that something is left"
    busy.jobs[-1]["config"]["children"] = False
    assert busy.run("act").returncode == 0
    assert not set(left) & set(processes_of(busy.store))


@pytest.mark.slow
def test_random_kills_never_tear_the_store(busy: TinyPlan) -> None:
    """Twenty runs cut off at random moments, whichever process is hit; then one completes."""
    chance = random.Random(7)
    busy.jobs[-1]["config"].update(rows=10, delay=0.02)
    for _ in range(20):
        process = busy.start("act")
        time.sleep(chance.uniform(0.0, 1.2))
        victims = [process.pid, *processes_of(busy.store)]
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(victims), signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
        assert_whole(busy)
        if busy.published("act"):
            shutil.rmtree(busy.store / "objects" / busy.object("act"))
    assert busy.run("act").returncode == 0
    assert_whole(busy)
