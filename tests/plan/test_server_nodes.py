"""Servers over several nodes in the plan: how a model is shared, and what each rank runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import load_backends, parallel_sizes
from agentc.cli import main
from agentc.compilation import compile_spec
from agentc.plan.render import plan_document

SPEC = """
agentc: 1
name: nodes
models:
  base: {backend: scratch, chat_format: chatml, corpus: expert, hidden_size: 128, heads: 4,
         context: 1024}
environments:
  craft: {backend: textcraft}
servers:
  big: {backend: vllm, max_model_len: 1024SHARED}
prompts:
  react: {instruction: Craft the goal.}
stages:
  expert: {kind: expert, split: train, limit: 20}
  sft: {kind: sft, model: base, data: expert, lr: 2e-5, global_batch: 16, max_length: 1024}
  evaluate: {kind: evaluate, model: sft, split: test, decode: {max_tokens: 256}OWN}
  again: {kind: evaluate, model: sft, split: test, decode: {max_tokens: 128}}
"""
PLACE = ", placement: {nodes: 2, gpus: 8}"
ONE = ", placement: {gpus: 1}"
"""A server without a GPU is another build of vLLM, which keys show."""


def write(folder: Path, shared: str = "", own: str = "") -> Path:
    path = folder / "spec.yaml"
    path.write_text(SPEC.replace("SHARED", shared).replace("OWN", own))
    return path


def document(folder: Path, shared: str = "", own: str = "") -> dict[str, Any]:
    found = compile_spec(write(folder, shared, own), {}, load_backends())
    assert found.plan is not None, found.diagnostics
    return plan_document(found.plan)


@pytest.mark.parametrize(
    ("said", "nodes", "gpus", "sizes"),
    [
        ((None, None), 1, 8, (1, 1)),
        ((4, None), 1, 4, (4, 1)),
        ((None, None), 2, 8, (4, 2)),
        ((2, None), 2, 8, (2, 4)),
        ((None, 4), 2, 8, (2, 4)),
        ((8, 1), 2, 8, (8, 1)),
        ((None, None), 3, None, (1, 3)),
    ],
)
def test_sizes_that_a_spec_leaves_open(
    said: tuple[int | None, int | None], nodes: int, gpus: int | None, sizes: tuple[int, int]
) -> None:
    assert parallel_sizes(*said, nodes, gpus) == sizes


def test_a_shared_server_spreads_and_changes_no_key(tmp_path: Path) -> None:
    plain = document(tmp_path, shared=", scope: shared" + ONE)
    spread = document(tmp_path, shared=", scope: shared" + PLACE)
    (server,) = spread["servers"]
    assert server["lease"]["ranks"]["nodes"] == 2
    assert server["lease"]["ranks"]["sizes"] == {"tensor_parallel": 4, "pipeline_parallel": 2}
    words = server["lease"]["program"]
    assert words[words.index("--tensor-parallel-size") + 1] == "4"
    assert server["asked"]["nodes"]["value"] == 2
    keys = [{job["id"]: job["key"] for job in each["jobs"]} for each in (plain, spread)]
    assert keys[0] == keys[1]


def test_a_server_within_its_job_spreads_over_that_jobs_nodes(tmp_path: Path) -> None:
    plain, spread = document(tmp_path), document(tmp_path, own=PLACE)
    leases = {
        job["id"]: lease
        for job in spread["jobs"]
        for lease in job["leases"]
        if lease["role"] == "policy"
    }
    assert leases["evaluate:rollout"]["ranks"]["nodes"] == 2
    assert "ranks" not in leases["again:rollout"]
    # Who has one node cannot share the start of a server that has two.
    assert len(plain["sessions"]) == 1
    assert spread["sessions"] == []
    one = document(tmp_path, own=ONE)
    keys = [{job["id"]: job["key"] for job in each["jobs"]} for each in (one, spread)]
    assert keys[0] == keys[1]


def test_plan_states_nodes_sizes_and_the_command_of_each_rank(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, shared=", scope: shared" + PLACE)
    arguments = ["plan", str(path), "--store", str(tmp_path / "store")]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "2 nodes (tensor_parallel 4 x pipeline_parallel 2), 6 cpus on each, 8 gpus" in said
    assert "rank 0 (the first node, listens): python -m agentc_backends.servers.vllm" in said
    assert "--nnodes 2 --node-rank 1 --master-addr {first_node}" in said
    assert main([*arguments, "--json"]) == 0
    (server,) = json.loads(capsys.readouterr().out)["servers"]
    first, second = server["ranks"]
    assert "--tensor-parallel-size 4 --pipeline-parallel-size 2" in first
    assert "--headless" not in first
    assert second.endswith("--node-rank 1 --master-addr {first_node} "
                           "--master-port {meeting_port} --headless")  # fmt: skip
