"""What could never run on a machine's GPUs is known beforehand, and what the driver is told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tiny_plan import TinyPlan

from agentc.placement import resolve_placement
from agentc.placement.device_count import DeviceCount, count_devices

TWO = {"AGENTC_GPUS": "0,1"}


@pytest.fixture
def tiny(tmp_path: Path) -> TinyPlan:
    plan = TinyPlan(tmp_path)
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint", resources={"gpus": 2})
    return plan


def count(
    plan: TinyPlan, environ: dict[str, str], *, queued: bool = False
) -> tuple[DeviceCount, list[str]]:
    found, lacking = count_devices(resolve_placement(plan.document(), None), environ, queued=queued)
    return found, [short.message for short in lacking]


def act(plan: TinyPlan, name: str, *leases: dict[str, Any], **resources: int) -> None:
    plan.job(name, inputs={"model": ["model"]}, leases=list(leases), resources=resources)


def test_what_fits_is_counted(tiny: TinyPlan) -> None:
    assert count(tiny, TWO) == (DeviceCount(gpus=2), [])
    assert count(tiny, {"AGENTC_GPUS": "0"}) == (DeviceCount(), []), "the CPU does the work"
    assert count(tiny, {"CUDA_VISIBLE_DEVICES": ""}) == (DeviceCount(), [])
    assert count(tiny, {"AGENTC_GPUS": "1"}, queued=True) == (DeviceCount(), [])


def test_a_job_that_wants_more_than_there_is(tiny: TinyPlan) -> None:
    _, said = count(tiny, {"AGENTC_GPUS": "7,"})
    assert said == ["model requests 2 GPUs (tiny.yaml:1), and this machine has 1 (7)"]


def test_servers_of_one_job_that_would_share(tiny: TinyPlan) -> None:
    leases = tiny.lease(devices=2), tiny.lease("environment", devices=1)
    act(tiny, "act", *leases, gpus=2)
    for queued in (False, True):
        _, said = count(tiny, TWO, queued=queued)
        assert len(said) == 1
        assert (
            "act requests 2 GPUs (tiny.yaml:1): its servers take 3 GPUs and there are 2" in said[0]
        )
        assert "placement: {gpus: 3}" in said[0]


def test_servers_of_a_session_that_would_share(tiny: TinyPlan) -> None:
    """Each member has an environment on a GPU; together they are too many."""
    for name in ("left", "right"):
        world = tiny.lease("environment", devices=1, identity={"world": name})
        act(tiny, name, tiny.lease(devices=1), world, gpus=2)
    assert count(tiny, TWO) == (DeviceCount(gpus=2), [])
    tiny.session("both", "left", "right")
    _, said = count(tiny, TWO)
    assert len(said) == 1
    assert "left, right requests 2 GPUs" in said[0]


def test_a_server_that_members_know_by_other_names_counts_once(tiny: TinyPlan) -> None:
    """A ranking calls the model its reference, rollouts their policy."""
    act(tiny, "act", tiny.lease(devices=1), gpus=1)
    lease = tiny.lease(devices=1, input="reference")
    tiny.job("rank", inputs={"reference": ["model"]}, leases=[lease], resources={"gpus": 1})
    tiny.session("both", "act", "rank")
    assert count(tiny, TWO) == (DeviceCount(gpus=2), [])
    tiny.jobs[-1]["inputs"]["reference"] = ["sft/" + "0" * 32]
    _, said = count(tiny, TWO)
    assert len(said) == 1
    assert "its servers take 2 GPUs and there are 1" in said[0]


def test_clients_beside_a_shared_server(tiny: TinyPlan) -> None:
    act(tiny, "act", tiny.lease(), gpus=1, cpus=3)
    act(tiny, "light", tiny.lease(), cpus=4)
    shared = tiny.share("policy", "act", "light", replicas=2)
    shared["asked"] = {"gpus": {"value": 1, "file": "spec", "line": 7}}
    _, said = count(tiny, TWO)
    assert said == [
        "act requests 1 GPU (tiny.yaml:1) beside server/policy with 2, "
        "and this machine has 2 (0, 1)"
    ]
    _, said = count(tiny, {"AGENTC_GPUS": "1"})
    assert (
        "server/policy requests 1 GPU for each of 2 copies (spec:7), and this machine has 1 (0)"
        in said
    )
    # Three that wait with three cores each, and a client that needs four.
    assert count(tiny, {"AGENTC_GPUS": "3"}) == (DeviceCount(gpus=3, cores=13), [])


def test_gpus_that_nobody_asks_for_are_told_of(tmp_path: Path) -> None:
    plan = TinyPlan(tmp_path)
    plan.job("rows")
    assert count(plan, TWO)[0].note == "", "nothing here works on a model"
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert "this machine has 2 GPUs, and no job requests one" in count(plan, TWO)[0].note
    assert count(plan, {"AGENTC_GPUS": "0"})[0].note == ""
