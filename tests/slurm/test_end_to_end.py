"""The shipped experiments through SLURM, with their real servers and trainers: every file that the
jobs make is the one that a run on this machine makes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.reduced import Size, write_reduced
from smoke import agentc, require_software
from tests.slurm.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]

SIZE = Size(
    expert_tasks=16, sft_steps=4, dpo_steps=2, explored_tasks=8, evaluated_tasks=4, exploring=8,
    evaluating=4,
)  # fmt: skip


def digests(store: Path) -> dict[str, str]:
    """Digest of each file that the jobs made, the report's aside: it tells times."""
    return {
        str(path.relative_to(store / "objects")): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((store / "objects").glob("*/*/data/**/*"))
        if path.is_file() and path.relative_to(store / "objects").parts[0] != "report"
    }


def test_same_results_as_on_this_machine(
    repository: Path, tmp_path: Path, cluster: Cluster, profile: Path
) -> None:
    for backend in ("trl.sft", "trl.dpo"):
        require_software(backend)
    tiny = repository / "specs" / "agent_r" / "tiny.yaml"
    specs: dict[str, list[str | Path]] = {
        "eto": [write_reduced(tmp_path / "smoke.yaml", SIZE), "-p", "rounds=1"],
        "agent_r": [tiny, "--scale", "smoke", "-p", "trainer=trl", "-p", "iterations=1"],
    }
    command = Path(sys.executable).with_name("agentc")
    # All at the same time: the runs on the cluster wait for its queue more than they compute.
    queued = {}
    for name, words in specs.items():
        where = ["--store", tmp_path / "slurm" / name / "store", "--profile", profile]
        queued[name] = subprocess.Popen(
            [command, "run", *words, "--plain", *where],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    for name, words in specs.items():
        agentc("run", *words, "--store", tmp_path / "local" / name / "store", "--plain")
    for name, process in queued.items():
        said, _ = process.communicate(timeout=1800)
        assert process.returncode == 0, f"{name}: {said}"
        here, there = (tmp_path / place / name / "store" for place in ("local", "slurm"))
        assert digests(there) == digests(here)
        assert [path for path in digests(there) if path.endswith("metrics.json")]
    assert cluster.queue() == []
