"""A run keeps to SLURM's limits on the number of jobs, and waits where one refuses a job."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from slurm_scene import SLURM, Lines
from tests.run.test_slurm_submissions import drive_refused, refused
from tiny_plan import TinyPlan

from agentc.exit_codes import EXIT_DONE
from agentc.placement.profile import Profile
from agentc.plan.work import Work, find_work, read_plan
from agentc.run import drive, slurm_endings, slurm_queue
from agentc.run.slurm_queue import SubmitLimit
from agentc.run.snakemake_process import DriverOptions, driver_argv
from agentc.runtime.store.layout import StoreLayout

POLICY = (
    "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's"
    " size and/or time limits)"
)
TEN = SubmitLimit(count=10, owner="the qos `ten`", qos="ten")


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (f"sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: {POLICY}",
         "QOSMaxSubmitJobPerUserLimit"),
        (f"sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: {POLICY}",
         "AssocMaxSubmitJobLimit"),
        (f"sbatch: error: AssocGrpSubmitJobsLimit\nsbatch: error: {POLICY}",
         "AssocGrpSubmitJobsLimit"),
        (f"sbatch: error: QOSMaxWallDurationPerJobLimit\nsbatch: error: {POLICY}", ""),
        ("sbatch: error: invalid partition specified: nosuch", ""),
    ],
)  # fmt: skip
def test_refusals_that_pass(words: str, limit: str) -> None:
    (refusal,) = slurm_endings.read_refusals(refused(words))
    assert (refusal.full, refusal.passing, refusal.away) == (limit, bool(limit), False)


def test_a_run_waits_for_a_place_and_then_submits_fewer(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f"sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: {POLICY}"
    code, said = drive_refused(plan, monkeypatch, words, times=2)
    assert code == EXIT_DONE, said
    assert said[0] == (
        "SLURM takes no more of your jobs now (QOSMaxSubmitJobPerUserLimit): waiting for a place,"
        " and then submitting 50 at a time; Ctrl-C ends this"
    )
    assert "submitting 25 at a time" in said[2]
    assert plan.published("only")


@pytest.fixture
def work(plan: TinyPlan) -> Work:
    for number in range(12):
        plan.job(f"s{number}", rows=1, say=number)
    return find_work(read_plan(plan.write()), StoreLayout(plan.store))


@pytest.mark.parametrize(
    ("queue", "places"),
    [
        ("", 10),
        ("ten|lab|other\n" * 3, 7),
        ("ten|lab|agentc-a1b2-sft\n" * 3, 10),  # those of the run itself
        ("normal|lab|other\n" * 3, 10),
        ("ten|lab|other\n" * 12, 1),
    ],
)
def test_what_a_limit_leaves_to_a_run(
    queue: str, places: int, work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue").write_text(queue)
    (tmp_path / "squeue").write_text(f"#!/bin/sh\ncat {tmp_path}/queue\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    view = Lines()
    options = DriverOptions(profile=SLURM, token="a1b2", limit=TEN)
    found = drive._within_limit(work, options, view)
    assert found.at_most == places
    assert f"submitting {places} at a time" in view.said[0]
    argv = driver_argv(tmp_path, work.layout, [], found)
    assert argv[argv.index("--jobs") + 1] == str(places)


def test_fewer_jobs_than_the_limit_stay_as_the_user_says(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unasked(*_: object) -> int:
        raise slurm_queue.QueueError("no answer")

    monkeypatch.setattr(slurm_queue, "count_towards", unasked)
    view = Lines()
    profile = Profile(name="o", file=SLURM.file, settings={"executor": "slurm", "jobs": 4})
    options = DriverOptions(profile=profile, token="a1b2", limit=TEN)
    found = drive._within_limit(work, options, view)
    assert view.said == []
    argv = driver_argv(tmp_path, work.layout, [], found)
    assert argv[argv.index("--jobs") + 1] == "4"
    typed = driver_argv(tmp_path, work.layout, [], replace(found, jobs=2))
    assert typed[typed.index("--jobs") + 1] == "2"
