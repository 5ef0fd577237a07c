"""Why SLURM does not start a job that is in its queue, by answers recorded from a real cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.placement.profile import Profile
from agentc.plan.work import find_work, read_plan
from agentc.preflight.queue import why_waiting
from agentc.runtime.store.layout import StoreLayout

RECORDED = Path(__file__).parents[1] / "preflight" / "slurm_22.05"


@pytest.mark.parametrize("answers", [True, False])
def test_the_setting_that_keeps_a_job_waiting_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    """The partition `short` ends jobs after ten minutes. Nothing where SLURM does not answer."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, script in {
        "scontrol": f"cat {RECORDED}/partitions.txt",
        "sinfo": f"cat {RECORDED}/nodes.txt",
        "sacctmgr": f'case "$*" in *qos*) cat {RECORDED}/qos.txt;; *) '
        f"cat {RECORDED}/associations.txt;; esac",
    }.items():
        (commands / name).write_text(f"#!/bin/sh\n{script if answers else 'exit 1'}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    plan = TinyPlan(tmp_path)
    for name in ("first", "second"):
        plan.job(name, rows=1, say=name)
    work = find_work(read_plan(plan.write()), StoreLayout(plan.store))
    usual = {"slurm_partition": "short", "runtime": 30}
    profile = Profile(
        name="ours",
        file=Path("config.yaml"),
        settings={"executor": "slurm", "default-resources": usual},
    )
    found = why_waiting(profile, work, plan.object("first"))
    if not answers:
        assert found == []
        return
    (line,) = found
    assert line.startswith(
        "30 min (default-resources: runtime), and the partition `short` ends jobs after 10; "
        "lower `default-resources: runtime` of the profile"
    )
    assert why_waiting(profile, work, "rollout/none") == []
