"""What preflight makes of SLURM's answers, recorded from a real cluster (22.05.8, four nodes with
two fake GPUs each; n3 drained, n4 with features)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.drafted import changed
from toy_plan import job, plan

from agentc.kinds.field import Json
from agentc.placement import Requests, resolve_placement
from agentc.placement.profile import Profile
from agentc.plan.job import ResourceRequest, Resources
from agentc.plan.render import plan_document
from agentc.preflight.cluster import check_cluster, read_cluster
from agentc.preflight.finding import PreflightFinding
from agentc.preflight.fitting import fulfils
from agentc.preflight.slurm_facts import (
    SlurmAnswer,
    read_associations,
    read_gpus,
    read_minutes,
    read_partitions,
    read_qos,
    read_tres,
)

RECORDED = Path(__file__).parent / "slurm_22.05"
ANSWERS = {
    name: SlurmAnswer((RECORDED / f"{name}.txt").read_text())
    for name in ("partitions", "nodes", "qos", "associations")
}
OURS = Profile(name="ours", file=Path("config.yaml"), settings={"executor": "slurm"})


def found(answers: Mapping[str, SlurmAnswer] = ANSWERS, **asked: Json) -> list[PreflightFinding]:
    """What is found of a training that asks for that."""
    told = {name: ResourceRequest(value, "spec.yaml", 7) for name, value in asked.items()}
    cpus = asked.get("cpus")
    resources = Resources(cpus=cpus if isinstance(cpus, int) else 1)
    one = changed(job("sft"), asked=told, resources=resources)
    cluster, silent = read_cluster(answers)
    if cluster is None:
        return silent
    return [
        *silent,
        *check_cluster(
            resolve_placement(plan_document(plan(one)), Requests(profile=OURS)), cluster
        ),
    ]


def complaint(**asked: Json) -> str:
    """The one problem with a request, and its remedy."""
    (one,) = [each for each in found(**asked) if each.verdict == "problem"]
    assert one.online
    assert one.about == ("sft",)
    return f"{one.check}: {one.message} / {one.fix}"


def test_partitions_are_read() -> None:
    read = read_partitions(ANSWERS["partitions"].text, ANSWERS["nodes"].text)
    assert list(read) == ["main", "low", "short"]
    main = read["main"]
    assert (main.default, main.state, main.max_minutes, main.max_nodes) == (True, "UP", 10080, None)
    assert (main.max_memory_mb, main.accounts, main.qos) == (None, None, None)
    assert read["short"].max_minutes == 10
    assert sum(each.count for each in main.nodes) == 4
    (drained,) = [each for each in main.nodes if not each.works]
    assert (drained.state, drained.gpus, drained.memory_mb) == ("drained", {"fake": 2}, 64000)
    assert any(each.features == {"ib", "a100"} for each in main.nodes)


def test_accounting_is_read() -> None:
    read = read_qos(ANSWERS["qos"].text)
    assert read["short"].max_minutes == 30
    assert read["short"].most == {"cpu": 4, "gres/gpu": 1}
    assert read["normal"].most == {}
    mine = {each.account: each.qos for each in read_associations(ANSWERS["associations"].text)}
    assert mine["lab"] == ("normal", "short")


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("7-00:00:00", 10080), ("00:10:00", 10), ("01:00:01", 61), ("30:00", 30), ("45", 45),
        ("2-12", 3600), ("UNLIMITED", None), ("NONE", None), ("infinite", None), ("", None),
    ],
)  # fmt: skip
def test_times(text: str, minutes: int | None) -> None:
    assert read_minutes(text) == minutes


def test_small_words_of_slurm() -> None:
    assert read_gpus("gpu:a100:4(S:0-1),gpu:2,tmp:100G") == {"a100": 4, "": 2}
    assert read_gpus("(null)") == {}
    assert read_tres("cpu=32,mem=250G,node=4,gres/gpu=8") == {
        "cpu": 32, "mem": 256000, "node": 4, "gres/gpu": 8,
    }  # fmt: skip
    there = frozenset({"ib", "a100"})
    assert fulfils("ib&a100", there)
    assert not fulfils("ib&h100", there)
    assert fulfils("h100|a100", there)


def test_a_request_that_fits() -> None:
    (one,) = found(cpus=8, gpus=2, gpu_type="fake", mem_mb=64000, minutes=60, constraint="ib",
                   account="lab", qos="normal")  # fmt: skip
    assert (one.verdict, one.check) == ("ok", "partition")


def test_what_does_not_fit() -> None:
    said = complaint(minutes=60, partition="short")
    assert "60 min (spec.yaml:7)" in said
    assert "partition `short` ends jobs after 10" in said
    assert "placement: {minutes: ...}" in said
    assert "did you mean `short`?" in complaint(minutes=1, partition="shrot")
    assert "no node of `main` has 65000 MiB" in complaint(minutes=1, mem_mb=65000)
    assert "largest has 64000 MiB" in complaint(minutes=1, mem_mb=65000)
    assert "no node of `main` has 3 GPUs" in complaint(minutes=1, gpus=3)
    assert "there are `fake`" in complaint(minutes=1, gpus=1, gpu_type="h100")
    assert "has 9 cores" in complaint(minutes=1, cpus=9)
    assert "there are `a100`, `ib`" in complaint(minutes=1, constraint="nvme")
    assert "has 4 that fit" in complaint(minutes=1, nodes=5)
    assert "you may not charge the account `labs`" in complaint(minutes=1, account="labs")
    assert "did you mean `lab`?" in complaint(minutes=1, account="labs")
    assert "did you mean `short`?" in complaint(minutes=1, qos="shart")
    assert "qos `short` ends jobs after 30" in complaint(minutes=40, account="lab", qos="short")
    assert "the qos `short` allows 1" in complaint(minutes=9, gpus=2, account="lab", qos="short")
    assert "you may not use the qos `short`" in complaint(minutes=9, account="root", qos="short")


def test_the_first_partition_of_a_list_that_can_is_taken() -> None:
    assert [one.verdict for one in found(minutes=60, partition="short,low")] == ["ok"]


def test_nodes_that_are_away_are_a_warning() -> None:
    warned = [each for each in found(minutes=9, nodes=4) if each.verdict == "warning"]
    assert "3 can take jobs now (the others: drained)" in warned[0].message
    (silent,) = [each for each in found() if each.verdict == "warning"]
    assert "`main` ends it after 10080 min" in silent.message


def test_a_partition_that_is_closed() -> None:
    shown = ANSWERS["partitions"].text.replace("State=UP", "State=DRAIN", 1)
    shown = shown.replace("AllowAccounts=ALL", "AllowAccounts=other", 1)
    answers = {**ANSWERS, "partitions": SlurmAnswer(shown)}
    said = [each.message for each in found(answers, minutes=1, account="lab")]
    assert any("is DRAIN" in each for each in said)
    assert any("not open to the account `lab`" in each for each in said)


def test_silence_is_no_problem() -> None:
    nobody = {name: SlurmAnswer(failure="scontrol is not on PATH") for name in ANSWERS}
    assert {each.verdict for each in found(nobody)} == {"unknown"}
    quiet = {**ANSWERS, "qos": SlurmAnswer(failure="accounting is not enabled"),
             "associations": SlurmAnswer(failure="the same")}  # fmt: skip
    verdicts = [each.verdict for each in found(quiet, minutes=1, qos="whatever")]
    assert sorted(verdicts) == ["ok", "unknown"]
