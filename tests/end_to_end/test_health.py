"""A run that learned nothing says so: every episode overflows, pairs have identical sides, and a
policy ends where it started. One small real run; `agentc run`, status and the report name each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from smoke import agentc, require_software

pytestmark = pytest.mark.slow

SPEC = """\
agentc: 1
name: sick
environments:
  textcraft: {backend: textcraft, max_depth: 2, max_expert_steps: 4, distractors: 3}
servers:
  local: {backend: transformers, max_model_len: 32}
prompts:
  react: {instruction: Craft the goal., reply_format: react}
defaults:
  environment: textcraft
  global_batch: 4
  decode: {max_tokens: 8}
models:
  base:
    backend: scratch
    architecture: llama
    hidden_size: 32
    layers: 1
    heads: 1
    context: 512
    vocab_size: 512
    chat_format: chatml
    corpus: [expert]
stages:
  expert: {kind: expert, split: train, limit: 8}
  still:
    doc: A learning rate that float32 rounds to zero moves no weight.
    kind: sft
    model: base
    data: expert
    lr: 1.0e-60
    max_steps: 3
    max_length: 512
    truncation: drop
  explore:
    doc: The server's context is shorter than the task.
    kind: rollout
    model: still
    split: train
    limit: 6
    max_turns: 4
  alike:
    doc: Pairs whose sides differ behind max_length.
    kind: script
    run: alike.py
    output: pairs
  contrast:
    kind: dpo
    model: still
    data: alike
    lr: 1.0e-4
    beta: 0.1
    max_steps: 3
    max_length: 48
    truncation: right
  report: {kind: report}
"""
ALIKE = """\
# /// script
# [tool.agentc]
# output = "pairs"
# ///
import json, sys
from pathlib import Path

stage = json.loads(Path(sys.argv[1]).read_text())
with Path(stage["output"]["folder"], "pairs.jsonl").open("w") as out:
    for number in range(4):
        sides = {
            side: [{"role": "assistant", "content": "craft oak planks " * 40 + side}]
            for side in ("chosen", "rejected")
        }
        row = {
            "id": f"t{number}#0", "task_id": f"t{number}", "outcome": "self",
            "prompt": [{"role": "user", "content": f"goal {number}"}],
            "chosen_reward": 1.0, "rejected_reward": 0.0,
            "chosen_id": f"t{number}#0", "rejected_id": f"t{number}#1", **sides,
        }
        out.write(json.dumps(row) + "\\n")
"""
EXPECTED = {
    "explore": "6 of 6 episodes (100%) end by overflow: the prompt fills the context",
    "still": "the policy is equal to its start: no weight changed in 3 steps",
    "contrast": "identical pairs: both sides of 4 of 4 pairs are the same tokens",
}


def test_a_run_that_learned_nothing_says_so(tmp_path: Path) -> None:
    require_software("trl.sft")
    spec = tmp_path / "sick.yaml"
    spec.write_text(SPEC, encoding="utf-8")
    (tmp_path / "alike.py").write_text(ALIKE, encoding="utf-8")
    words = (spec, "--store", tmp_path / "store")
    ended = agentc("run", *words, "--plain")
    printed = ended[ended.index("\nhealth:\n") :]
    unwrapped = " ".join(printed.split())
    for stage, what in EXPECTED.items():
        assert f" {stage}: {what};" in unwrapped
    findings = [line for line in printed.splitlines() if re.match(r"  \S", line)]
    assert len(findings) <= 6
    lines = agentc("status", "--store", tmp_path / "store", "--json").splitlines()
    health = {job["id"]: " ".join(job["health"]) for job in map(json.loads, lines)}
    assert all(what in health[stage] for stage, what in EXPECTED.items())
    jobs = json.loads(agentc("plan", *words, "--json"))["jobs"]
    report = next(job["object"] for job in jobs if job["kind"] == "report")
    page = tmp_path / "store" / "objects" / report / "data" / "index.html"
    text = page.read_text(encoding="utf-8")
    assert 'id="health"' in text
    assert all(what in text for what in EXPECTED.values())
