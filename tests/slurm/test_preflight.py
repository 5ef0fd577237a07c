"""`agentc plan --preflight` and `agentc plan --profile` against a real SLURM: what they say of a
request is what becomes of it."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.slurm.cluster import Cluster
from tests.support.patience import PATIENCE_S

from agentc.cli import main
from agentc.preflight.slurm_facts import ask_slurm, read_partitions
from agentc.runtime.machine.slurm_nodes import expand_hosts

pytestmark = [pytest.mark.slow, pytest.mark.slurm]
SPEC = """
agentc: 1
name: asked
models:
  base: {{backend: scratch, chat_format: chatml, corpus: expert}}
environments:
  craft: {{backend: textcraft}}
prompts:
  react: {{instruction: Craft the goal.}}
stages:
  expert: {{kind: expert, split: train, limit: 24, placement: {{{placement}}}}}
"""
REQUESTS = [
    ("minutes: 9, partition: short", "--time=9 --partition=short"),
    ("minutes: 11, partition: short", "--time=11 --partition=short"),
    ("minutes: 9, mem_mb: 64000", "--time=9 --mem=64000"),
    ("minutes: 9, mem_mb: 64001", "--time=9 --mem=64001"),
    ("minutes: 9, partition: nowhere", "--time=9 --partition=nowhere"),
    ("minutes: 9, constraint: nvlink", "--time=9 --constraint=nvlink"),
    ("minutes: 9, cpus: 9", "--time=9 --cpus-per-task=9"),
]


def fate(cluster: Cluster, words: str) -> str:
    """What becomes of a job that asks for that: `runs`, why it waits for ever, or a refusal."""
    done = subprocess.run(
        [
            "sbatch",
            "--parsable",
            "--ntasks=1",
            "--mem=500",
            "--output=/dev/null",
            *words.split(),
            "--wrap=true",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return done.stderr
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        shown = cluster.command("scontrol", "show", "job", "-o", done.stdout.strip())
        if "JobState=PENDING" not in shown:
            return "runs"
        reason = shown.partition("Reason=")[2].split()[0]
        if reason not in ("None", "Priority", "Resources"):
            cluster.command("scancel", done.stdout.strip())
            return reason
        time.sleep(0.2)
    raise AssertionError(f"nothing becomes of it: {shown}")


def test_preflight_agrees_with_sbatch(
    cluster: Cluster, profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (profile / "config.yaml").write_text("executor: slurm\ndefault-resources: {mem_mb: 500}\n")
    spec = tmp_path / "spec.yaml"
    for placement, words in REQUESTS:
        spec.write_text(SPEC.format(placement=placement))
        store = str(tmp_path / "store")
        main(
            [
                "plan",
                "--preflight",
                str(spec),
                "--store",
                store,
                "--profile",
                str(profile),
                "--json",
            ]
        )
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        problems = [
            each for each in found["findings"] if each["online"] and each["verdict"] == "problem"
        ]
        said = fate(cluster, words)
        assert bool(problems) == (said != "runs"), (placement, problems, said)
        assert {each["about"][0] for each in problems} <= {"expert"}
    assert cluster.queue() == []


def test_answers_are_those_of_the_cluster(cluster: Cluster) -> None:
    answers = ask_slurm()
    read = read_partitions(answers["partitions"].text, answers["nodes"].text)
    assert {"main", "short"} <= set(read)
    assert read["main"].default
    assert read["short"].max_minutes == 10
    assert sum(each.count for each in read["main"].nodes if each.works) == len(cluster.nodes)
    assert all(sum(each.gpus.values()) == 2 for each in read["main"].nodes)
    shown = cluster.command("scontrol", "show", "partition", "-o", "main")
    nodes = shown.partition(" Nodes=")[2].split()[0]
    assert expand_hosts(nodes) == cluster.command("scontrol", "show", "hostnames", nodes).split()
