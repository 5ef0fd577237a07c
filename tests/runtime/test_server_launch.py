"""How resources by Snakemake's names become options of sbatch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tiny_plan import TinyPlan

from agentc.runtime.servers import shared_server_launch
from agentc.runtime.servers.shared_server_files import ServerFolder
from agentc.runtime.servers.shared_server_launch import sbatch_options
from agentc.runtime.store.layout import StoreLayout


@pytest.mark.parametrize(
    ("resources", "options"),
    [
        ({}, []),
        ({"mem_mb": "4000", "runtime": "90"}, ["--mem=4000", "--time=90"]),
        ({"mem_mb": "4000", "mem_mb_per_cpu": "500"}, ["--mem-per-cpu=500"]),
        ({"gpu": "2", "gpu_model": "a100"}, ["--gpus=a100:2"]),
        ({"nodes": "2", "gres": "gpu:a100:4"}, ["--gres=gpu:a100:4", "--nodes=2"]),
        ({"gpu": "0", "cpus_per_task": "4"}, ["--cpus-per-task=4"]),
        (
            {"slurm_partition": "big", "qos": "long", "slurm_extra": "--exclude='n1,n2' -J mine"},
            ["--exclude=n1,n2", "--partition=big", "--qos=long", "-J", "mine"],
        ),
    ],
)
def test_options_of_sbatch(resources: dict[str, str], options: list[str]) -> None:
    assert sorted(sbatch_options(resources)) == sorted(options)


@pytest.mark.parametrize(
    ("sbatch", "kind", "words"),
    [
        ("echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1",
         shared_server_launch.SlurmAwayError, "connect failure"),
        ("exec sleep 30", shared_server_launch.SlurmAwayError, "sbatch timed out after"),
        ("echo 'invalid partition specified: nowhere' >&2; exit 1",
         shared_server_launch.ServerLaunchError, "invalid partition"),
    ],
)  # fmt: skip
def test_slurm_that_does_not_take_a_server(
    plan: TinyPlan, monkeypatch: pytest.MonkeyPatch, sbatch: str, kind: type, words: str
) -> None:
    """One that is away is told from one that refuses, and holds the lock of the server for a
    bounded time."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    plan.job("act", inputs={"model": ["model"]}, leases=[plan.lease()])
    server = plan.share("policy", "act")
    script = plan.folder / "bin" / "sbatch"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\n{sbatch}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(shared_server_launch, "_SUBMIT_S", 1)
    layout = StoreLayout(plan.store)
    folder = ServerFolder(layout, server)
    launch = {"how": "slurm", "argv": ["true"], "options": [], "cwd": str(Path.cwd())}
    with pytest.raises(shared_server_launch.ServerLaunchError, match=words) as raised:
        shared_server_launch.ensure(layout, folder, launch, 0.0, failed_too=True)
    assert raised.type is kind
