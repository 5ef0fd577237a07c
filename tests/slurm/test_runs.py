"""Runs on a real SLURM with tiny programs: what is submitted, how a run is stopped, and what
becomes of the jobs of one that was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan, drivers_of, processes_of

from agentc.run.active_runs import active_runs
from agentc.runtime.store.layout import StoreLayout
from agentc.store.objects import list_objects, verify_object

pytestmark = [pytest.mark.slow, pytest.mark.slurm]


def add_rollouts(plan: TinyPlan, count: int, seconds: float, say: str = "working") -> None:
    """Jobs of two GPUs each: the two nodes of the partition run two at a time."""
    for number in range(count):
        plan.job(
            f"part{number}", rows=int(10 * seconds), delay=0.1, children=True, resume=True,
            say=f"{say} {number}", resources={"gpus": 2},
        )  # fmt: skip


def running(plan: TinyPlan) -> list[str]:
    """Jobs whose programs are at work."""
    return [job["id"] for job in plan.jobs if plan.status(job["id"]).get("state") == "running"]


def assert_nothing_left(plan: TinyPlan, cluster: Cluster) -> None:
    assert cluster.queue() == []
    wait_for(lambda: not processes_of(plan.store) and not drivers_of(plan.store))
    layout = StoreLayout(plan.store)
    assert active_runs(layout) == ()
    found, problems = list_objects(layout)
    assert problems == []
    assert [problem for stored in found for problem in verify_object(stored)] == []


def test_jobs_are_submitted_as_the_profile_says(
    plan: TinyPlan, cluster: Cluster, profile: Path
) -> None:
    file = profile / "config.yaml"
    file.write_text(file.read_text() + "slurm-jobname-prefix: mine\n")
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    for name in ("left", "right"):
        plan.job(
            name, inputs={"model": ["model"]}, leases=[plan.lease(devices=1)], call=True,
            say=name, echo=["CUDA_VISIBLE_DEVICES"], resources={"gpus": 2},
        )  # fmt: skip
    plan.session("both", "left", "right")
    plan.job("joined", inputs={"x": ["left", "right"]}, kind="pair")["local"] = True
    before = {job.id for job in cluster.history()}
    done = plan.run_all(f"profile={profile}")
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = [job for job in cluster.history() if job.id not in before]
    assert [job.state for job in jobs] == ["COMPLETED"] * 2, "a session is one job"
    assert plan.published("joined")
    names = [job.name.partition("mine-agentc-")[2].partition("-")[2] for job in jobs]
    assert names == ["model", "both"], "its token and its stage"
    for job in jobs:
        shown = cluster.command("scontrol", "show", "job", str(job.id))
        assert "Partition=short" in shown
        assert "TimeLimit=00:05:00" in shown
    log = plan.store / "objects" / plan.object("left") / "logs" / "log.txt"
    assert "CUDA_VISIBLE_DEVICES = 1\n" in log.read_text(), "the server has the other one"
    assert plan.manifest("left")["hardware"]["gpus_given"] == ["0", "1"]
    assert_nothing_left(plan, cluster)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_run_leaves_no_job(
    plan: TinyPlan, cluster: Cluster, profile: Path, number: int, code: int
) -> None:
    add_rollouts(plan, count=3, seconds=60)
    process = plan.start_all(f"profile={profile}")
    wait_for(lambda: running(plan))
    assert sorted({job.state for job in cluster.queue()}) == ["PENDING", "RUNNING"]
    process.send_signal(number)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, said
    assert_nothing_left(plan, cluster)


def test_killed_run_is_taken_over(plan: TinyPlan, cluster: Cluster, profile: Path) -> None:
    """Jobs of the killed run go on, and the next run takes what they make."""
    add_rollouts(plan, count=3, seconds=6)
    process = plan.start_all(f"profile={profile}")
    wait_for(lambda: running(plan))
    wait_for(lambda: len(cluster.queue()) == 3)
    before = {job.id for job in cluster.queue()}
    process.kill()
    process.wait()
    done = plan.run_all(f"profile={profile}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 jobs of a run that was killed are in the queue" in done.stdout
    for number in range(3):
        assert plan.manifest(f"part{number}")["attempts"] == 1
    assert max(job.id for job in cluster.history()) == max(before), "nothing was submitted again"
    assert_nothing_left(plan, cluster)


def test_a_long_job_of_a_killed_run_delays_only_what_needs_it(
    plan: TinyPlan, cluster: Cluster, profile: Path
) -> None:
    """The next run submits what does not depend on it while it runs."""
    gate = plan.folder.parent / "gate"
    plan.job("short", rows=60, delay=0.1)
    plan.job("long", rows=3, go_on=str(gate))
    plan.job("after", rows=1, kind="pair", inputs={"data": ["short"]})
    process = plan.start_all(f"profile={profile}")
    wait_for(lambda: sorted(running(plan)) == ["long", "short"])
    before = {job.id for job in cluster.queue()}
    process.kill()
    process.wait()
    process = plan.start_all(f"profile={profile}")
    wait_for(lambda: plan.published("after"))
    assert not plan.published("long")
    assert {job.id for job in cluster.queue()} & before, "the long job was ended"
    gate.touch()
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    for name in ("short", "long", "after"):
        assert plan.manifest(name)["attempts"] == 1
    assert_nothing_left(plan, cluster)


def test_jobs_that_nobody_needs_any_more_are_cancelled(
    plan: TinyPlan, cluster: Cluster, profile: Path
) -> None:
    add_rollouts(plan, count=2, seconds=60)
    process = plan.start_all(f"profile={profile}")
    wait_for(lambda: len(running(plan)) == 2)
    process.kill()
    process.wait()
    changed = TinyPlan(plan.folder.parent)
    add_rollouts(changed, count=1, seconds=0.1, say="otherwise")
    done = changed.run_all(f"profile={profile}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cancelled 2 jobs that a killed run had left in the queue" in done.stdout
    assert_nothing_left(plan, cluster)


@pytest.mark.parametrize("killed", [False, True])
def test_cancel_from_another_shell(
    plan: TinyPlan, cluster: Cluster, profile: Path, killed: bool
) -> None:
    add_rollouts(plan, count=3, seconds=60)
    process = plan.start_all(f"profile={profile}")
    wait_for(lambda: running(plan))
    if killed:
        process.kill()
    agentc = str(Path(sys.executable).with_name("agentc"))
    argv = [agentc, "cancel", "tiny", "--store", str(plan.store)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cluster.queue() == []
    assert process.wait(timeout=PATIENCE_S) == (-signal.SIGKILL if killed else 143)
    assert_nothing_left(plan, cluster)
    again = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert again.returncode == 5
    assert "no run is active" in again.stderr
