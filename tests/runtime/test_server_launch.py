"""How resources by Snakemake's names become options of sbatch."""

from __future__ import annotations

import pytest

from agentc.runtime.server_launch import sbatch_options


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
