"""A training over two nodes of a real SLURM: the trainer of `trl.sft`, one of its two processes
on each (gloo, on processors), against both on one machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from smoke import require_software
from tests.slurm.cluster import Cluster
from tests.support.patience import PATIENCE_S

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.emit import compile_to

pytestmark = [pytest.mark.slow, pytest.mark.slurm]
SPEC = """
agentc: 1
name: two-nodes
models:
  base: {backend: scratch, architecture: llama, hidden_size: 32, layers: 1, heads: 2, context: 512,
         vocab_size: 320, chat_format: chatml, corpus: expert}
environments:
  craft: {backend: textcraft, max_depth: 2, max_expert_steps: 4, distractors: 2}
prompts:
  react: {instruction: Craft the goal., reply_format: react_inline}
stages:
  expert: {kind: expert, split: train, limit: 24}
  sft: {kind: sft, model: base, data: expert, lr: 1e-3, max_steps: 4, global_batch: 8,
        max_length: 512, truncation: drop, processes: 2, placement: {nodes: 2, cpus: 1}}
"""
_STRIPPED = "env | grep -o '^SLURM_[A-Z0-9_]*' | grep -v _JOB_ID | sed 's/^/-u /'"
COUNTED = ("model.safetensors", "config.json")


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    """A compiled directory."""
    require_software("trl.sft")
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    found = compile_spec(spec, {}, load_backends())
    assert found.plan is not None, found.diagnostics
    compile_to(tmp_path / "compiled", found.plan)
    return tmp_path / "compiled"


def wrapper(compiled: Path, store: Path, job: str, *words: str) -> list[str]:
    plan = str(compiled / "plan.json")
    argv = [sys.executable, "-m", "agentc.runtime.job", "--plan", plan, "--store", str(store)]
    return [*argv, "--job", job, *words]


def sft_of(compiled: Path, store: Path) -> Path:
    jobs = json.loads((compiled / "plan.json").read_text())["jobs"]
    (key,) = [job["key"] for job in jobs if job["id"] == "sft"]
    return store / "objects/sft" / str(key)


def finished(cluster: Cluster, number: str, log: Path, timeout: float = PATIENCE_S) -> str:
    """How SLURM says that a job ended; waits for that."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        shown = cluster.command("scontrol", "show", "job", "-o", number)
        state = shown.partition("JobState=")[2].split()[0]
        if state not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"):
            return state
        time.sleep(0.5)
    raise AssertionError(f"still running: {log.read_text() if log.exists() else ''}")


@pytest.mark.long
def test_two_nodes_train_what_one_does(cluster: Cluster, compiled: Path, tmp_path: Path) -> None:
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    for job in ("expert", "base"):
        subprocess.run(wrapper(compiled, alone, job), check=True, timeout=PATIENCE_S)
    shutil.copytree(alone, spread)
    # Outside of SLURM the same spec trains both processes on this machine.
    subprocess.run(wrapper(compiled, alone, "sft"), check=True, timeout=PATIENCE_S)

    log = tmp_path / "log.txt"
    words = " ".join(wrapper(compiled, spread, "sft", "--asked", "nodes=2,mem_mb=2000,runtime=8"))
    asked = ["--nodes=2", "--ntasks=2", "--cpus-per-task=1", "--mem=2000", "--time=8"]
    number = cluster.command(
        # As Snakemake's plugin does: the wrapper is one task of a step on the first node, and of
        # the allocation's variables it has the job's number alone.
        *("sbatch", "--parsable", "--partition=main", *asked, f"--output={log}"),
        f"--wrap=env $({_STRIPPED}) srun -n1 --cpu-bind=q --cpus-per-task=1 --nodes=2 {words}",
    ).strip()
    state = finished(cluster, number, log)
    assert state == "COMPLETED", log.read_text()

    one, two = sft_of(compiled, alone), sft_of(compiled, spread)
    assert json.loads((two / "artifact.json").read_text())["facts"]["world_size"] == 2
    for name in COUNTED:
        same = (one / "data" / name).read_bytes() == (two / "data" / name).read_bytes()
        assert same, f"{name} differs"
    shown = cluster.command("scontrol", "show", "job", "-o", number)
    assert "NumNodes=2" in shown
    steps = (
        cluster.command("sacct", "-n", "-P", "-j", number, "-o", "JobID,NNodes,State")
        if (cluster.accounting)
        else f"{number}.1|2|COMPLETED"
    )
    assert f"{number}.1|2|COMPLETED" in steps, "the launchers are one step on both nodes"


def test_fewer_nodes_than_asked_for_do_not_start(
    cluster: Cluster, compiled: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    words = " ".join(wrapper(compiled, tmp_path / "store", "expert", "--asked", "nodes=2,gpu=4"))
    number = cluster.command(
        *("sbatch", "--parsable", "--partition=main", "--nodes=1", "--gpus=1", "--mem=500"),
        *("--time=5", f"--output={log}", f"--wrap=srun -n1 --cpus-per-task=1 {words}"),
    ).strip()
    assert finished(cluster, number, log) == "FAILED"
    said = log.read_text()
    assert "2 nodes were asked for, and it has 1" in said
    assert "2 GPUs on each node were asked for, and it sees 1 (SLURM_GPUS_ON_NODE)" in said
    assert f"scontrol show job {number}" in said
