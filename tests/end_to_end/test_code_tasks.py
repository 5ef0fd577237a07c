"""Programming tasks of a file, in a run: the answers' box has the packages of `sandbox.lock`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from smoke import agentc

from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.software import SANDBOX

pytestmark = pytest.mark.slow

REFERENCE = "def total(n):\n    import numpy\n    return int(numpy.arange(n).sum())\n"
SPEC = """\
agentc: 1
name: code
environments:
  plain: {backend: colbench_backend, invented_tasks: 20}
  code: {backend: colbench_backend, tasks: tasks.jsonl, splits: {train: {range: [0, 2]}}, rounds: 2}
servers:
  coder:
    backend: scripted
    max_model_len: 4096
    rules:
      - {turn: 0, reply: What does it give?}
      - {turn: 1, reply: "I WANT TO ANSWER:\\nANSWER"}
prompts:
  talk: {instruction: Ask once., reply_format: text}
models:
  tiny: {backend: scratch, corpus: expert, context: 4096, hidden_size: 16, layers: 1, heads: 1,
         vocab_size: 300}
stages:
  expert: {kind: expert, environment: plain, split: train, limit: 4}
  solve: {kind: rollout, environment: code, server: coder, model: tiny, split: train}
"""


def test_answers_run_with_the_packages_of_their_lock(tmp_path: Path) -> None:
    digest = lock_digest(SANDBOX.text)[:16]
    built = Path(os.environ.get("AGENTC_SOFTWARE", ""), digest, "complete.json")
    if not built.exists():
        pytest.skip("the software stack `sandbox` is not built: `make software`")
    rows = [
        {
            "problem_description": f"Add up numbers{mark}",
            "ground_truth": REFERENCE,
            "test_cases": {f"test{n}": f"total({n})" for n in range(10)},
        }
        for mark in (".", "!")
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    answer = REFERENCE.replace("\n", "\\n")
    (tmp_path / "spec.yaml").write_text(SPEC.replace('ANSWER"', f'{answer}"'))
    agentc("run", tmp_path / "spec.yaml", "--store", tmp_path / "store", "--plain")
    [manifest] = (tmp_path / "store").glob("objects/rollout/*/artifact.json")
    text = (manifest.parent / "data" / "trajectories.jsonl").read_text()
    played = [json.loads(line) for line in text.splitlines()]
    assert [row["reward"] for row in played] == [1.0, 1.0]
    assert [row["report"]["passed"] for row in played] == [10, 10]
    [lease] = [
        each for each in json.loads(manifest.read_text())["leases"] if each["role"] == "environment"
    ]
    assert digest.startswith(lease["lock"][:16])
