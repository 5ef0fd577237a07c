"""Which GPUs a machine has for jobs, and how a job's own are shared by its processes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.patience import wait_for
from tiny_plan import TinyPlan

from agentc.runtime.machine.hardware import (
    DevicesError,
    DeviceTaker,
    TooFewDevicesError,
    divide,
    machine_devices,
    read_listing,
    visibility,
)
from agentc.runtime.unit_devices import UnitDevices

TWO = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5d1c2d11)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-77aa0c3e)
"""
PARTED = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5d1c2d11)
  MIG 3g.40gb     Device  0: (UUID: MIG-c6d4f1ef-42e4)
  MIG 3g.40gb     Device  1: (UUID: MIG-cba663e8-9bed)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-77aa0c3e)
"""


def named(environ: Mapping[str, str], listing: str = "") -> list[str]:
    return [each.name for each in machine_devices(environ, lambda: read_listing(listing))]


@pytest.mark.parametrize(
    ("said", "visible", "names"),
    [
        (None, None, ["0", "1"]),
        (None, "1", ["1"]),
        (None, "GPU-77aa", ["GPU-77aa"]),
        (None, "0,-1,1", ["0"]),
        (None, "", []),
        (None, "-1", []),
        ("1", None, ["0"]),
        ("1", "1,0", ["1"]),
        ("1,", None, ["1"]),
        ("0", None, []),
        ("0,", None, ["0"]),
        ("1, 0", "1", ["1", "0"]),
        ("MIG-c6d4f1ef-42e4,GPU-77aa0c3e", None, ["MIG-c6d4f1ef-42e4", "GPU-77aa0c3e"]),
    ],
)
def test_who_says_which(said: str | None, visible: str | None, names: list[str]) -> None:
    found = {"AGENTC_GPUS": said, "CUDA_VISIBLE_DEVICES": visible}
    assert named({name: value for name, value in found.items() if value is not None}, TWO) == names


def test_a_machine_of_which_nobody_can_tell() -> None:
    assert named({}) == []
    assert named({"AGENTC_GPUS": "3"}) == ["0", "1", "2"]


def test_parts_of_gpus_are_devices_by_name() -> None:
    """Programs take numbers or names, not both in one list."""
    assert named({}, PARTED) == ["MIG-c6d4f1ef-42e4", "MIG-cba663e8-9bed", "GPU-77aa0c3e"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("four", "AGENTC_GPUS=four is neither a number of GPUs nor a list"),
        ("", "is neither a number"),
        ("3", "AGENTC_GPUS=3, and the driver shows 2 GPUs"),
        ("1,1", "GPU-77aa0c3e is listed twice"),
        ("1,GPU-77aa0c3e", "GPU-77aa0c3e is listed twice"),
    ],
)
def test_what_cannot_be_meant(said: str, words: str) -> None:
    with pytest.raises(DevicesError, match=words):
        named({"AGENTC_GPUS": said}, TWO)


def test_a_gpu_has_one_lock_by_whatever_name_it_goes() -> None:
    def identity(said: str, **environ: str) -> list[str]:
        found = machine_devices({"AGENTC_GPUS": said, **environ}, lambda: read_listing(TWO))
        return [each.identity for each in found]

    assert identity("1,") == identity("GPU-77aa,") == ["GPU-77aa0c3e"]
    # In a job of SLURM's a number is the job's own, which the driver shows it by that number.
    assert identity("0,", SLURM_JOB_ID="7") == ["GPU-5d1c2d11"]
    unlisted = machine_devices({"AGENTC_GPUS": "1", "SLURM_JOB_ID": "7"}, list)
    assert [each.identity for each in unlisted] == ["slurm-7-0"]


def test_numbers_are_those_of_the_bus() -> None:
    shown = visibility(["2", "3"], numbered=True)
    assert shown["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert shown["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert "CUDA_DEVICE_ORDER" not in visibility(["MIG-1"], numbered=True)
    assert "CUDA_DEVICE_ORDER" not in visibility(["0"], numbered=False), "a queue's own numbers"


def server(role: str = "policy", devices: int = 0) -> DeviceTaker:
    return DeviceTaker(role, f"some.{role}", devices)


def test_servers_of_a_job_have_gpus_of_their_own() -> None:
    both = {"a": server(devices=2), "b": server("environment", 1)}
    assert divide(["0", "1", "2", "3"], both) == ({"a": [["0", "1"]], "b": [["2"]]}, ["3"])
    assert divide(["7"], {"a": server()}) == ({"a": [["7"]]}, []), "one that does not say has all"
    assert divide(["7"], {"b": server("environment")}) == ({"b": [[]]}, ["7"])
    assert divide(["0", "1"], {}) == ({}, ["0", "1"])
    with pytest.raises(TooFewDevicesError, match=r"take 3 GPUs and there are 2.*gpus: 3"):
        divide(["0", "1"], both)


def test_copies_of_a_server_have_gpus_of_their_own() -> None:
    model = server(devices=2)._replace(copies="auto")
    gpus = [str(number) for number in range(8)]
    assert divide(gpus[:5], {"a": model}) == ({"a": [["0", "1"], ["2", "3"]]}, ["4"])
    given, left = divide(gpus[:6], {"a": model, "b": server("environment", 1)})
    assert (given, left) == ({"a": [["0", "1"], ["2", "3"]], "b": [["4"]]}, ["5"])
    assert divide(gpus, {"a": model._replace(copies=3)})[0] == {
        "a": [["0", "1"], ["2", "3"], ["4", "5"]]
    }
    with pytest.raises(TooFewDevicesError, match="take 6 GPUs and there are 4"):
        divide(gpus[:4], {"a": model._replace(copies=3)})


def test_leased_gpus_are_shown_by_their_numbers_on_the_bus(tmp_path: Path) -> None:
    """CUDA numbers them by speed otherwise: a job would compute on the GPU of another one."""
    environ = {"AGENTC_GPUS": "2,3", "AGENTC_DEVICE_LOCKS": str(tmp_path)}
    unit = UnitDevices({"gpu": "2"}, environ, "job")
    unit.acquire(lambda until: pytest.fail("both are free"), lambda text: None)
    views = unit.divide({"a": server(devices=1)})
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert [*views.server("a")] == [{"CUDA_VISIBLE_DEVICES": "2", **order}]
    assert views.program == {"CUDA_VISIBLE_DEVICES": "3", **order}
    unit.release()


def test_a_queue_keeps_what_it_gave_and_it_is_shared_within_the_job() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "4,6,7", "SLURM_JOB_ID": "7"}
    unit = UnitDevices({"gpu": "3", "submitted": "1"}, environ, "job")
    views = unit.divide({"a": server(devices=1), "b": server("environment", 1)})
    assert [*views.server("a")] == [{"CUDA_VISIBLE_DEVICES": "4"}]
    assert [*views.server("b")] == [{"CUDA_VISIBLE_DEVICES": "6"}]
    assert views.program == {"CUDA_VISIBLE_DEVICES": "7"}
    # Whoever asked for none sees what there is, and so does a job over nodes.
    for asked in ({"submitted": "1"}, {"submitted": "1", "gpu": "3", "nodes": "2"}):
        views = UnitDevices(asked, environ, "job").divide({"a": server(devices=1)})
        assert ([*views.server("a")], views.program) == ([{}], {})


def test_a_queue_that_does_not_say_which_gpus_it_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of the node, where it shows as many as were requested; else two servers would
    take the same one. One server has what is there."""
    listed = "GPU 0: A (UUID: GPU-a)\nGPU 1: A (UUID: GPU-b)\n"
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\nprintf '{listed}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    one, two = {"a": server(devices=1)}, {"a": server(devices=1), "b": server("judge", 1)}
    views = UnitDevices({"gpu": "2", "submitted": "1"}, {}, "job").divide(two)
    assert [views.server(name)[0]["CUDA_VISIBLE_DEVICES"] for name in two] == ["0", "1"]
    assert views.server("a")[0]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    tool.write_text(f"#!/bin/sh\nprintf '{listed}GPU 2: A (UUID: GPU-c)\n'\n")
    unit = UnitDevices({"gpu": "2", "submitted": "1"}, {}, "job")
    assert [*unit.divide(one).server("a")] == [{}]
    with pytest.raises(DevicesError, match=r"which of the 3 GPUs of this node are the 2 of this"):
        unit.divide(two)


def test_servers_never_share_what_a_queue_gave_too_few_of() -> None:
    """Also where AGENTC_PROLOGUE=warn accepts an allocation that is smaller than the request."""
    environ = {"CUDA_VISIBLE_DEVICES": "5", "SLURM_JOB_ID": "7", "AGENTC_PROLOGUE": "warn"}
    unit = UnitDevices({"gpu": "2", "submitted": "1"}, environ, "job")
    with pytest.raises(DevicesError, match="take 2 GPUs and there are 1"):
        unit.divide({"a": server(devices=1), "b": server("judge", 1)})
    assert [*unit.divide({"a": server(devices=2)}).server("a")] == [{}], "one has what is there"


def test_servers_of_the_node_are_apart_from_those_of_the_job_in_a_queue() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "4,6,7", "SLURM_JOB_ID": "7"}
    asked = {"gpu": "3", "submitted": "1"}
    unit = UnitDevices(asked, environ, "job", {"human": 1})
    policy = server(devices=1)._replace(copies="auto")
    shown = [each["CUDA_VISIBLE_DEVICES"] for each in unit.divide({"a": policy}).server("a")]
    assert (shown, unit.of_node("human")) == (["4", "6"], {"CUDA_VISIBLE_DEVICES": "7"})
    assert unit.of_node("other") is None
    one = {"CUDA_VISIBLE_DEVICES": "4"}
    unit = UnitDevices({"gpu": "1", "submitted": "1"}, one, "job", {"human": 1})
    with pytest.raises(DevicesError, match=r"take 1 GPUs and there are 0.*scope: node"):
        unit.divide({"a": policy})
    with pytest.raises(DevicesError, match="the server human takes 4 beside others"):
        UnitDevices(asked, environ, "job", {"human": 4})


def test_without_gpus_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_NVIDIA", "_KFD", "_CARDS"):
        monkeypatch.setattr(f"agentc.runtime.machine.hardware.{name}", Path("/nowhere"))
    monkeypatch.setenv("PATH", "")
    for asked in ({}, {"gpu": "2"}):
        views = UnitDevices(asked, {}, "job").divide({"a": server(devices=2)})
        assert ([*views.server("a")], views.program) == ([{}], {})
    # Somebody says so: then the processor does the work, whoever asks.
    views = UnitDevices({"gpu": "2"}, {"AGENTC_GPUS": "0"}, "job").divide({"a": server()})
    assert [views.program] == [*views.server("a")] == [{"CUDA_VISIBLE_DEVICES": ""}]


@pytest.fixture
def environ(plan: TinyPlan) -> dict[str, str]:
    locks = str(plan.store.parent / "locks")
    return {"AGENTC_GPUS": "0,1,2,3", "AGENTC_DEVICE_LOCKS": locks}


def wrapper(
    plan: TinyPlan, environ: Mapping[str, str], job: str, asked: str
) -> subprocess.CompletedProcess[str]:
    plan.write()
    words = ["--asked", asked] if asked else []
    return subprocess.run(
        [*plan.argv(job), *words], env={**os.environ, **environ}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_jobs_servers_and_its_program_see_gpus_of_their_own(
    plan: TinyPlan, environ: dict[str, str]
) -> None:
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    echo = ["--echo", "CUDA_VISIBLE_DEVICES"]
    leases = [
        plan.lease(arguments=echo, devices=2),
        plan.lease("environment", arguments=echo, devices=1),
    ]
    plan.job(
        "act", inputs={"model": ["model"]}, leases=leases, echo=["CUDA_VISIBLE_DEVICES"],
    )  # fmt: skip
    assert plan.run("model", **environ).returncode == 0
    done = wrapper(plan, environ, "act", "gpu=4")
    assert done.returncode == 0, done.stderr
    logs = plan.data("act").parent / "logs"
    said = {name: (logs / f"{name}.txt").read_text() for name in ("log",)}
    said |= {role: (logs / f"{role}.log").read_text() for role in ("policy", "environment")}
    assert "CUDA_VISIBLE_DEVICES = 0,1\n" in said["policy"]
    assert "CUDA_VISIBLE_DEVICES = 2\n" in said["environment"]
    assert "CUDA_VISIBLE_DEVICES = 3\n" in said["log"]
    assert plan.manifest("act")["hardware"]["gpus_given"] == ["0", "1", "2", "3"]
    plan.job("late", inputs={"model": ["model"]}, leases=leases)
    done = wrapper(plan, environ, "late", "gpu=2")
    assert done.returncode == 1
    assert "its servers take 3 GPUs and there are 2" in done.stderr
    assert "placement: {gpus: 3}" in done.stderr


def test_a_server_is_copied_over_the_gpus_of_its_job(
    plan: TinyPlan, environ: dict[str, str]
) -> None:
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    policy = plan.lease(arguments=["--echo", "CUDA_VISIBLE_DEVICES"], devices=2, copies="auto")
    plan.job(
        "act", inputs={"model": ["model"]}, leases=[policy], echo=["CUDA_VISIBLE_DEVICES"],
        run=["cp", "job.json", "data/seen.json"], call=True,
    )  # fmt: skip
    assert plan.run("model", **environ).returncode == 0
    done = wrapper(plan, environ, "act", "gpu=4")
    assert done.returncode == 0, done.stderr
    endpoint = json.loads((plan.data("act") / "seen.json").read_text())["leases"]["policy"]
    assert len({*endpoint["urls"]}) == 2
    assert endpoint["url"] == endpoint["urls"][0]
    logs = sorted((plan.data("act").parent / "logs").glob("policy*.log"))
    said = {log.read_text().split("CUDA_VISIBLE_DEVICES = ")[1].split("\n")[0] for log in logs}
    assert said == {"0,1", "2,3"}
    (lease,) = plan.manifest("act")["leases"]
    assert [sorted(copy) for copy in lease["copies"]] == [["cpu_s", "max_rss_mb", "ready_s"]] * 2


def test_who_asks_for_none_sees_none(plan: TinyPlan, environ: dict[str, str]) -> None:
    plan.job("plain", echo=["CUDA_VISIBLE_DEVICES"])
    assert wrapper(plan, environ, "plain", "").returncode == 0
    assert "CUDA_VISIBLE_DEVICES = \n" in (
        plan.data("plain").parent / "logs" / "log.txt"
    ).read_text()  # fmt: skip


@pytest.mark.slow
def test_shared_server_has_gpus_of_its_own_until_it_ends(
    plan: TinyPlan, environ: dict[str, str], tmp_path: Path
) -> None:
    """Its copies and a job beside them, through Snakemake: a server outlives its starter, and no
    job gets its GPUs meanwhile."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    echo = ["--echo", "CUDA_VISIBLE_DEVICES"]
    for name in ("left", "right"):
        plan.job(
            name, inputs={"model": ["model"]}, leases=[plan.lease(arguments=echo)], call=True,
            echo=["CUDA_VISIBLE_DEVICES"], resources={"gpus": 1}, say=name,
        )  # fmt: skip
    shared = plan.share("policy", "left", "right", replicas=2)
    shared["asked"] = {"gpus": {"value": 1, "file": "tiny.yaml", "line": 1}}
    shared["resources"]["gpus"] = 1
    done = plan.run_all("gpus", **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = plan.store / "servers" / str(os.getuid()) / shared["key"]
    states = [json.loads((folder / str(n) / "state.json").read_text()) for n in (1, 2)]
    of_copies = {gpu for state in states for gpu in state.get("gpus", [])}
    said = {
        line.split(" = ")[1]
        for number in (1, 2)
        for line in (folder / str(number) / "logs" / "policy.log").read_text().splitlines()
        if line.startswith("CUDA_VISIBLE_DEVICES")
    }
    assert len(of_copies) == 2
    assert said == of_copies
    of_jobs = set()
    for name in ("left", "right"):
        text = (plan.data(name).parent / "logs" / "log.txt").read_text()
        of_jobs.add(text.split("CUDA_VISIBLE_DEVICES = ")[1].split("\n")[0])
        assert plan.manifest(name)["hardware"]["gpus_given"]
    assert not of_jobs & of_copies
    wait_for(lambda: not _held(tmp_path / "locks"))


@pytest.mark.slow
def test_a_server_of_the_node_in_a_job_of_a_queue(plan: TinyPlan, environ: dict[str, str]) -> None:
    """It and the job's own server share no GPU of the allocation, though it leases none itself."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    echo = ["--echo", "CUDA_VISIBLE_DEVICES"]
    leases = [
        plan.lease(arguments=echo, devices=1),
        plan.lease("environment", arguments=echo, devices=1),
    ]
    plan.job("act", inputs={"model": ["model"]}, leases=leases, echo=["CUDA_VISIBLE_DEVICES"])
    node = plan.share("world", "act", role="environment", scope="node")
    assert plan.run("model", **environ).returncode == 0
    given = {**environ, "CUDA_VISIBLE_DEVICES": "3,5,7"}
    del given["AGENTC_GPUS"]
    done = wrapper(plan, given, "act", "gpu=3,submitted=1")
    assert done.returncode == 0, done.stderr
    (log,) = (plan.store / "servers").glob(f"*/{node['key']}/*/1/logs/environment.log")
    logs = plan.data("act").parent / "logs"
    texts = [log.read_text(), (logs / "policy.log").read_text(), (logs / "log.txt").read_text()]
    said = [each.split("CUDA_VISIBLE_DEVICES = ")[1].split("\n")[0] for each in texts]
    assert said == ["7", "3", "5"]


def _held(folder: Path) -> list[str]:
    """Locks that somebody holds, by what the kernel says; who waits for a lock of any process of
    the machine stands there too, with an arrow, and holds nothing."""
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    held = {fields[5].rsplit(":", 1)[1] for fields in lines if fields[1] != "->"}
    return [path.name for path in folder.glob("gpu-*") if str(path.stat().st_ino) in held]
