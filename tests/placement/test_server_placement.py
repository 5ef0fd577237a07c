"""Placement of shared servers as people get it wrong: what `agentc check` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.cli import main

SPEC = """
agentc: 1
name: served
models:
  base: {{backend: scratch, architecture: llama, hidden_size: 32, layers: 1, heads: 2, context: 512,
         vocab_size: 320, chat_format: chatml, corpus: expert}}
environments: {{craft: {{backend: textcraft, max_depth: 2, max_expert_steps: 4, distractors: 2}}}}
servers: {{policy: {{backend: transformers, {setting}}}}}
prompts: {{react: {{instruction: Craft the goal., reply_format: react_inline}}}}
stages:
  expert: {{kind: expert, split: train, limit: 24}}
  collect: {{kind: rollout, model: base, split: train, decode: {{max_tokens: 64}}, limit: 2}}
"""


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("scope: shared, placement: {time: 60}", "did you mean `minutes`?"),
        ("scope: shared, placement: {memory: 8GB}", "did you mean `mem_mb`?"),
        ("scope: shared, placement: {mem_mb: 8GB}", "help: write `8192`"),
        ("scope: shared, placement: {minutes: 2:00:00}", "help: write `120`"),
        ("scope: shared, placement: {slurm_partition: gpu}", "did you mean `partition`?"),
        ("scope: shared, placement: {gpus: -1}", "a whole number of at least 0"),
        ("scope: shared, placement: {retries: 3}", "is for the `placement:` of a stage"),
        ("scope: shared, placement: {local: true}", "is for the `placement:` of a stage"),
        ("scope: shared, replicas: 0", "a whole number from 1 to 64"),
        ("scope: cluster", "one of `job`, `node`, `shared`"),
        ("scope: job, placement: {minutes: 5}", "write `scope: shared`, or remove `placement`"),
    ],
)
def test_malformed_placement_of_a_server(
    setting: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC.format(setting=setting))
    assert main(["check", str(tmp_path / "spec.yaml")]) == 1
    assert said in capsys.readouterr().err
