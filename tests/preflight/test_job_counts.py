"""Limits on the number of jobs, by answers recorded from a real cluster (22.05.8): what preflight
says of them, and which one a run keeps to."""

from __future__ import annotations

import pytest
from tests.preflight.test_cluster import ANSWERS, OURS, RECORDED
from tests.support.drafted import changed
from toy_plan import job, plan

from agentc.kinds.field import Json
from agentc.placement import Requests, ResolvedRequest, resolve_placement
from agentc.plan.job import ResourceRequest
from agentc.plan.render import plan_document
from agentc.preflight.cluster import Cluster, check_cluster, read_cluster
from agentc.preflight.queue import check_job_counts, submit_limits
from agentc.preflight.slurm_facts import (
    JobCounts,
    SlurmAnswer,
    enforces_counts,
    read_associations,
    read_qos,
)

# qos: Name,MaxWall,MaxTRES,MaxTRESPU,GrpTRES,MaxJobsPU,MaxSubmitPU,GrpJobs,GrpSubmit
QOS = "normal||||||||\nten|||||4|10|20|40\nclosed||||||0||\n"
# assoc: Account,Partition,QOS,MaxWall,MaxTRES,MaxJobs,MaxSubmit,GrpJobs,GrpSubmit,DefaultQOS
ASSOCIATIONS = "default||normal,ten,closed|||9|30|||\nlab||normal|||||||ten\n"
COUNTED = {
    **ANSWERS,
    "qos": SlurmAnswer(QOS),
    "associations": SlurmAnswer(ASSOCIATIONS),
    "user": SlurmAnswer("root|default\n"),
    "config": SlurmAnswer("AccountingStorageEnforce = associations,limits,qos\n"),
}


def cluster(**answers: str) -> Cluster:
    found, _ = read_cluster({**COUNTED, **{n: SlurmAnswer(text) for n, text in answers.items()}})
    assert found is not None
    return found


def jobs(count: int, **asked: Json) -> tuple[ResolvedRequest, ...]:
    told = {name: ResourceRequest(value, "spec.yaml", 7) for name, value in asked.items()}
    made = [changed(job(f"s{number}", "script"), asked=told) for number in range(count)]
    return resolve_placement(plan_document(plan(*made)), Requests(profile=OURS))


def test_counts_are_read() -> None:
    qos = read_qos(QOS)
    assert qos["ten"].counts == JobCounts(running=4, submitted=10, all_running=20, all_submitted=40)
    assert qos["normal"].counts == JobCounts()
    default, lab = read_associations(ASSOCIATIONS)
    assert default.counts == JobCounts(running=9, submitted=30)
    assert (default.default_qos, lab.default_qos) == (None, "ten")
    # Answers to the shorter questions of before have none.
    recorded = read_qos((RECORDED / "qos.txt").read_text())
    assert {each.counts for each in recorded.values()} == {JobCounts()}


@pytest.mark.parametrize(
    ("shown", "enforced"),
    [
        ("AccountingStorageEnforce = none\n", False),
        ("AccountingStorageEnforce = associations\n", False),
        ("AccountingStorageEnforce = associations,limits,qos,safe\n", True),
        ("", True),
    ],
)
def test_limits_count_where_the_cluster_enforces_them(shown: str, enforced: bool) -> None:
    assert enforces_counts(shown) is enforced
    assert bool(submit_limits(jobs(1, qos="ten"), cluster(config=shown))) is enforced


@pytest.mark.parametrize(
    ("asked", "limits"),
    [
        ({}, [(30, "the account `default`")]),
        ({"qos": "ten"}, [(10, "the qos `ten`"), (30, "the account `default`"),
                          (40, "the qos `ten`")]),
        ({"account": "lab"}, [(10, "the qos `ten`"), (40, "the qos `ten`")]),
    ],
)  # fmt: skip
def test_the_smallest_limit_comes_first(
    asked: dict[str, Json], limits: list[tuple[int, str]]
) -> None:
    found = submit_limits(jobs(2, **asked), cluster())
    assert [(limit.count, limit.owner) for limit in found] == limits


def said(count: int, at_once: int, **asked: Json) -> list[str]:
    found = check_job_counts(jobs(count, **asked), cluster(), at_once)
    return [f"{one.verdict}: {one.message}" for one in found]


def test_what_preflight_says_of_them() -> None:
    assert said(12, 50, qos="ten") == [
        "warning: 12 jobs at a time, and the qos `ten` takes 10 in the queue",
        "warning: 12 jobs at a time, and the qos `ten` lets 4 of them run at once",
    ]
    assert said(12, 4, qos="ten") == []
    assert said(3, 50, qos="ten") == []
    assert said(1, 50, qos="closed") == [
        "problem: the qos `closed` takes no jobs (its limit on submitted jobs is 0)"
    ]


def test_a_partition_that_is_not_open_to_the_default_account() -> None:
    shown = ANSWERS["partitions"].text.replace("AllowAccounts=ALL", "AllowAccounts=vips", 1)
    assert shown != ANSWERS["partitions"].text
    problems = [
        one for one in check_cluster(jobs(1), cluster(partitions=shown)) if one.verdict == "problem"
    ]
    assert [(one.message, one.fix) for one in problems] == [
        ("`main` is not open to the account `default` (your default account)",
         "it is open to `vips`")
    ]  # fmt: skip
