"""A job with a real limit of one minute and longer work: it stops itself, is submitted again, and
ends with the rows of an uncut one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.slurm.cluster import Cluster
from tests.slurm.test_runs import assert_nothing_left
from tests.support.patience import PATIENCE_S
from tiny_plan import TinyPlan

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]


def test_job_stops_before_its_limit_and_is_submitted_again(
    plan: TinyPlan, cluster: Cluster, profile: Path
) -> None:
    plan.job("limited", rows=45, delay=1.0, heed=2.5, resources={"minutes": 1, "retries": 5})
    process = plan.start_all(f"profile={profile}")
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert "(limited): it stopped before its time limit, at row" in said
    assert "submitting it again, to continue where it was cut off (2 of at most 6)" in said
    jobs = [job for job in cluster.history() if plan.object("limited").split("/")[1] in job.comment]
    states = [job.state for job in jobs]
    assert states == ["FAILED"] * (len(states) - 1) + ["COMPLETED"], "none ran into its limit"
    earlier = plan.manifest("limited")["earlier_attempts"]
    assert [attempt["slurm"] for attempt in earlier] == [str(job.id) for job in jobs[:-1]]
    assert all("with its work saved" in attempt["because"] for attempt in earlier)
    rows = (plan.data("limited") / "trajectories.jsonl").read_text().splitlines()
    assert len(rows) == len(set(rows)) == 45
    assert_nothing_left(plan, cluster)
