"""The commonest incidents on a real SLURM: its controller is away while a job is submitted, and
somebody cancels one."""

from __future__ import annotations

import signal
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
    assert "SLURM answers: going on" in said
    assert f"SLURM ended job {job.id} (rollout): CANCELLED; somebody cancelled it" in said
    print(f"the run was over {took:.0f} s after the cancellation")
    assert_nothing_left(plan, cluster)


@pytest.mark.long
def test_accounting_is_away_from_submission_to_end(
    plan: TinyPlan, cluster: Cluster, profile: Path
) -> None:
    """Snakemake hears of their ends all the same, from the queue: it submits what follows, and is
    not started once more."""
    if not cluster.accounting:
        pytest.skip("this cluster keeps no accounts")
    plan.job("first", rows=5, delay=0.1)
    plan.job("second", rows=5, delay=0.1, inputs={"x": ["first"]}, kind="pair")
    cluster.daemons.stop("slurmdbd", signal.SIGKILL)
    try:
        process = plan.start_all(f"profile={profile}")
        said, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        if not cluster.daemons.is_running("slurmdbd"):
            cluster.start_accounting()
    assert process.returncode == 0, said
    assert "starting it once more" not in said
    assert_nothing_left(plan, cluster)
