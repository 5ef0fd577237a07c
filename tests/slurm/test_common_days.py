"""The commonest incidents on a real SLURM: its controller is away while a job is submitted, and
somebody cancels one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster
from tests.slurm.test_runs import assert_nothing_left, running
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan

pytestmark = [pytest.mark.slow, pytest.mark.slurm]


def test_controller_is_away_at_submission_and_then_a_job_is_cancelled(
    plan: TinyPlan, cluster: Cluster, profile: Path
) -> None:
    plan.job("rollout", rows=1000, delay=0.1, resume=True)
    log = plan.folder / "snakemake.log"
    cluster.daemons.stop("slurmctld", signal.SIGKILL)
    process = plan.start_all(f"profile={profile}")
    wait_for(lambda: log.exists() and "SLURM sbatch failed" in log.read_text())
    cluster.start_controller()
    wait_for(lambda: running(plan) == ["rollout"])
    queue = cluster.queue()
    assert len(queue) == 1, queue
    job = queue[0]
    cluster.command("scancel", str(job.id))
    cancelled = time.monotonic()
    said, _ = process.communicate(timeout=PATIENCE_S)
    took = time.monotonic() - cancelled
    assert process.returncode == 3, said
    assert "SLURM takes no jobs (" in said
    assert "SLURM answers: continuing" in said
    assert f"SLURM ended job {job.id} (rollout): CANCELLED; somebody cancelled it" in said
    print(f"the run was over {took:.0f} s after the cancellation")
    assert_nothing_left(plan, cluster)


def test_job_that_can_never_start_is_said_and_shown(
    plan: TinyPlan, cluster: Cluster, profile: Path
) -> None:
    """The partition `short` ends jobs after ten minutes."""
    file = profile / "config.yaml"
    file.write_text(file.read_text().replace("runtime: 5", "runtime: 30"))
    plan.job("rollout", rows=1)
    process = plan.start_all(f"profile={profile}")
    (job,) = wait_for(cluster.queue)
    said = plan.folder / "said.txt"
    assert process.stdout is not None
    for line in process.stdout:
        said.write_text(line)
        if "SLURM does not start" in line:
            break
    assert f"SLURM does not start job {job.id} (rollout): PartitionTimeLimit; " in said.read_text()
    agentc = str(Path(sys.executable).with_name("agentc"))
    words = ["status", "tiny", "--format", "json", "--store", str(plan.store)]
    shown = json.loads(subprocess.run([agentc, *words], check=True, capture_output=True).stdout)
    assert (shown["state"], shown["queue"]["number"]) == ("queued", str(job.id))
    assert shown["queue"]["reason"] == "PartitionTimeLimit"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert_nothing_left(plan, cluster)


@pytest.mark.long
def test_accounting_is_away_from_submission_to_end(
    plan: TinyPlan, cluster: Cluster, profile: Path
) -> None:
    """Snakemake hears of their ends all the same, from the queue: it submits what follows while
    another job runs for long, and is not started once more."""
    if not cluster.accounting:
        pytest.skip("this cluster keeps no accounts")
    plan.job("first", rows=5, delay=0.1)
    plan.job("second", rows=5, delay=0.1, inputs={"x": ["first"]}, kind="pair")
    plan.job("third", rows=5, delay=0.1, inputs={"x": ["second"]}, kind="pair")
    plan.job("long", rows=100_000, delay=0.1)
    cluster.daemons.stop("slurmdbd", signal.SIGKILL)
    try:
        process = plan.start_all(f"profile={profile}")
        wait_for(lambda: plan.published("third"))
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        if not cluster.daemons.is_running("slurmdbd"):
            cluster.start_accounting()
    assert process.returncode == 130, said
    assert "starting it once more" not in said
    assert_nothing_left(plan, cluster)
