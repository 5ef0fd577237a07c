"""`reply_format: tools` end to end, small: an expert's calls are learnt, played on the embedded
server and on vLLM, paired, learnt from again, and evaluated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from smoke import agentc, require_software

SPEC = """\
agentc: 1
name: calls
environments:
  textcraft:
    {backend: textcraft, max_depth: 2, max_expert_steps: 4, distractors: 3, end_on_refusal: true,
     expert_style: recipe_first}
servers:
  local: SERVER
prompts:
  call: {instruction: Craft the goal., reply_format: tools}
defaults:
  max_length: 1024
  truncation: drop
  global_batch: 16
  decode: {max_tokens: 64}
  max_turns: 5
models:
  base: {backend: scratch, architecture: llama, initialisation: induction, hidden_size: 128,
         layers: 2, heads: 2, context: 1024, vocab_size: 768, chat_format: chatml, corpus: expert}
stages:
  expert: {kind: expert, split: train, limit: 48, attempts: 2, max_turns: null}
  sft: {kind: sft, model: base, data: expert, lr: 3e-3, max_steps: 60, adam_beta2: 0.98}
  explore: {kind: rollout, model: sft, split: train, limit: 12}
  pairs: {kind: pair, expert: expert, rollouts: explore}
  dpo: {kind: dpo, model: sft, data: pairs, lr: 1e-4, max_steps: 2, beta: 0.1, nll_weight: 20}
  evaluate: {kind: evaluate, model: dpo, split: test, limit: 8}
"""


EMBEDDED = "{backend: transformers}"
VLLM = "{backend: vllm, dtype: float32, enforce_eager: true}"


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("server", [EMBEDDED, pytest.param(VLLM, marks=pytest.mark.vllm)])
def test_calls_are_learnt_and_played(tmp_path: Path, server: str) -> None:
    require_software("serve.vllm" if server == VLLM else "serve.transformers")
    spec = tmp_path / "calls.yaml"
    spec.write_text(SPEC.replace("SERVER", server), encoding="utf-8")
    agentc("run", spec, "--store", tmp_path / "store", "--plain")
    played = [
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in sorted((tmp_path / "store").glob("objects/rollout/*/data/trajectories.jsonl"))
    ]
    assert sorted(map(len, played)) == [8, 12]
    for rows in played:
        assert all(row["messages"][0]["tools"][0]["function"]["name"] == "act" for row in rows)
        roles = {message["role"] for row in rows for message in row["messages"]}
        assert roles <= {"system", "user", "assistant", "tool"}
    # The server showed the functions in the tokens that the trainer learnt from.
    told = [
        json.loads(path.read_text(encoding="utf-8"))["facts"]["log_prob_agreement"]
        for path in sorted((tmp_path / "store").glob("objects/rollout/*/artifact.json"))
    ]
    assert all(each["prompts"] > 0 and each["other_prompts"] == 0 for each in told)
    # It has learnt to call, which nothing but the expert's calls have taught it.
    rows = [row for each in played for row in each]
    assert sum(row["invalid"] for row in rows) < sum(row["turns"] for row in rows)
