"""Faults of the cluster under a run: it completes with the results of an undisturbed one, or stops
and names cause and remedy."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster
from tests.slurm.test_runs import assert_nothing_left, running
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]


@pytest.fixture
def low(profile: Path) -> Path:
    """The profile, with jobs that others may take the place of."""
    file = profile / "config.yaml"
    file.write_text(file.read_text().replace("slurm_partition: short", "slurm_partition: low"))
    return profile


def job_of(cluster: Cluster, plan: TinyPlan, name: str) -> tuple[int, str]:
    """Number and node of the SLURM job that makes a job's object."""
    key = plan.object(name).split("/")[1]
    (found,) = (job for job in cluster.queue() if key in job.comment)
    return found.id, found.nodes


def test_run_lives_through_all_that_befalls_its_nodes(
    plan: TinyPlan, cluster: Cluster, low: Path
) -> None:
    """Four jobs on four nodes: one loses the daemon of its node, one its whole node, one is
    preempted, one runs into its time limit. A fifth is submitted when all that is over: its
    submission may exclude nodes that failed, and must be taken."""
    names = ("daemon", "node", "preempted", "timed")
    for name in names:
        # The one that runs into its limit is at work then, however late SLURM looks.
        rows = 600 if name == "timed" else 200
        plan.job(name, rows=rows, delay=0.1, resume=True, say=name, resources={"gpus": 2})
    plan.job("after", rows=1, inputs={"x": list(names)}, kind="pair")
    process = plan.start_all(f"profile={low}")
    wait_for(lambda: len(running(plan)) == 4)
    where = {name: job_of(cluster, plan, name) for name in names}

    cluster.kill_node(where["daemon"][1])
    cluster.lose_node(where["node"][1])
    more_important = ["-p", "main", "-w", where["preempted"][1], "--gres=gpu:2", "--mem=100"]
    cluster.command("sbatch", *more_important, "-o", "/dev/null", "--wrap", "sleep 3")
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 3))
    cluster.command("scontrol", "update", f"jobid={where['timed'][0]}", f"endtime={soon}")

    wait_for(lambda: cluster.states()[where["node"][1]].startswith("down"))
    for name in ("daemon", "node"):
        cluster.start_node(where[name][1])
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert f"SLURM ended job {where['timed'][0]} (timed): TIMEOUT; submitting it again" in said
    attempts = {name: plan.manifest(name)["attempts"] for name in names}
    assert attempts == {"daemon": 1, "node": 2, "preempted": 2, "timed": 2}
    made = {n: (plan.data(n) / "trajectories.jsonl").read_text().splitlines() for n in names}
    assert {name: len(rows) for name, rows in made.items()} == {
        **dict.fromkeys(names, 200),
        "timed": 600,
    }
    assert all(rows[:200] == made["timed"][:200] for rows in made.values())
    assert_nothing_left(plan, cluster)
