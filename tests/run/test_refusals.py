"""Submissions that SLURM refused, in the log of Snakemake's plugin (2.8.0, SLURM 22.05.8): one
paragraph for all jobs of a reason, with the setting that is meant and where it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.placement.profile import Profile, find_profile
from agentc.plan.work import Work, find_work, read_plan
from agentc.run import outcome
from agentc.run.refusals import describe_refusals
from agentc.runtime.store.layout import StoreLayout

SINGLE = """\
[Sat Nov 28 00:35:18 2026]
Error in rule {rule}:
    message: SLURM sbatch failed. The error message was '{said}'.
    sbatch call:
        sbatch --parsable --job-name agentc-a1b2 --output '/x/%j.log' --wrap="python -m snakemake"
For further error details see the cluster/cloud log and the log files of the involved rule(s).
    jobid: 1
    output: {store}/objects/{rule}/{key}/artifact.json (update)
    shell:
        exec python -m agentc.runtime.job
        (command exited with non-zero exit code)
Cannot restore {store}/objects/{rule}/{key}/artifact.json: no backup found.
"""
ARRAY = """\
SLURM sbatch failed for array job submission (tasks 1-2). The error message was '{said}'.
    sbatch call:
        sbatch --parsable --array=1-2 --wrap="python -m snakemake"

"""
PART = """\
[Sat Nov 28 00:35:18 2026]
Error in rule {rule}:
    message: Part of failed array sbatch submission (tasks 1-2); see log for details.\
For further error details see the cluster/cloud log and the log files of the involved rule(s).
    jobid: 1
    output: {store}/objects/{rule}/{key}/artifact.json (update)
Cannot restore {store}/objects/{rule}/{key}/artifact.json: no backup found.
"""
RAISED = """\
[Sat Nov 28 00:35:18 2026]
Error in rule {rule}:
    message: Job submission failed with exception: The given account nosuch appears to be invalid.\
 Available accounts:
default, root.For further error details see the cluster/cloud log and the log files of the\
 involved rule(s).
    jobid: 1
    output: {store}/objects/{rule}/{key}/artifact.json (update)
"""
PARTITION = (
    "sbatch: error: invalid partition specified: nosuch\n"
    "sbatch: error: Batch job submission failed: Invalid partition name specified"
)
NODES = (
    "sbatch: error: Memory specification can not be satisfied\n"
    "sbatch: error: Batch job submission failed: Requested node configuration is not available"
)


@pytest.fixture
def work(plan: TinyPlan) -> Work:
    plan.job("s0", rows=1, say=0)
    plan.job("s1", rows=1, say=1, resources={"mem_mb": 900})
    return find_work(read_plan(plan.write()), StoreLayout(plan.store))


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        "executor: slurm\n"
        "default-resources: {slurm_partition: nosuch, mem_mb: 500, slurm_account: nosuch}\n"
    )
    found = find_profile(str(folder), {})
    assert found is not None
    return found


def log_of(plan: TinyPlan, *parts: tuple[str, str], said: str = "") -> Path:
    """A log with a block for each job, or one of its own."""
    text = ""
    for template, name in parts:
        rule, key = plan.object(name).split("/") if name else ("", "")
        text += template.format(rule=rule, key=key, said=said, store=plan.store)
    path = plan.folder / "snakemake.log"
    path.write_text(text + "Exiting because a job execution failed.\n")
    return path


def test_jobs_refused_for_one_reason_are_one_paragraph(
    plan: TinyPlan, work: Work, profile: Profile
) -> None:
    log = log_of(plan, (SINGLE, "s0"), (SINGLE, "s1"), said=PARTITION)
    (words,) = describe_refusals(log, work, profile)
    assert words.splitlines() == [
        "SLURM refused s0, s1: invalid partition specified: nosuch; Invalid partition name"
        " specified",
        f"  partition nosuch comes from default-resources: slurm_partition of {profile.file}",
        f"  `agentc plan --preflight SPEC --profile {profile.name}` says what the cluster has and"
        " takes",
    ]


def test_the_reason_of_an_array_is_that_of_its_tasks(
    plan: TinyPlan, work: Work, profile: Profile
) -> None:
    log = log_of(plan, (ARRAY, ""), (PART, "s0"), (PART, "s1"), said=PARTITION)
    (words,) = describe_refusals(log, work, profile)
    assert words.startswith("SLURM refused s0, s1: invalid partition specified: nosuch; ")


def test_what_no_node_has_names_what_was_set(plan: TinyPlan, work: Work, profile: Profile) -> None:
    (words,) = describe_refusals(log_of(plan, (SINGLE, "s1"), said=NODES), work, profile)
    assert "  mem_mb 900 comes from tiny.yaml:1" in words.splitlines()
    assert "cpus" not in words, "nobody set that"


def test_an_account_that_the_plugin_refuses(plan: TinyPlan, work: Work, profile: Profile) -> None:
    (words,) = describe_refusals(log_of(plan, (RAISED, "s0")), work, profile)
    lines = words.splitlines()
    assert lines[0] == (
        "SLURM refused s0: The given account nosuch appears to be invalid. Available accounts:"
        " default, root."
    )
    assert lines[1] == (
        f"  account nosuch comes from default-resources: slurm_account of {profile.file}"
    )


def test_no_tail_of_snakemake_s_log_follows(plan: TinyPlan, work: Work, profile: Profile) -> None:
    log = log_of(plan, (SINGLE, "s0"), said=PARTITION)
    causes = describe_refusals(log, work, profile)
    text = outcome.describe_failures(work.layout, work.missing, [], log, causes)
    assert "Cannot restore" not in text
    assert "sbatch --parsable" not in text
    assert text.endswith(f"Snakemake's log: {log}")


def test_a_log_without_a_refusal_says_nothing(plan: TinyPlan, work: Work, profile: Profile) -> None:
    assert describe_refusals(log_of(plan), work, profile) == []
    assert describe_refusals(plan.folder / "nowhere.log", work, profile) == []
