"""Tasksets in a whole run: verifiers, unmodified, in the software of its lock, plays them
under its own harness against a server that answers by rule, and against vLLM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.built_software import built_python

from agentc.cli import main
from agentc_backends.software import TORCH, VERIFIERS, VLLM

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
SPEC = """\
agentc: 1
name: tasksets
environments:
  plain: {backend: textcraft, max_expert_steps: 4}
  sums: {backend: verifiers, taskset: sums, sources: [sums.py], config: {tasks: 5},
         splits: {train: {range: [0, 3]}, test: {range: [3, 5]}}}
  guessing: {backend: verifiers, taskset: guessing, sources: [guessing.py],
             splits: {all: {range: [0, 3]}}}
servers:
  clerk: {backend: scripted, rules: [{match: "1 [+] 1", reply: "It is 2."}, {reply: "0."}]}
  guesser:
    backend: scripted
    rules: [{match: "Guess number 1", reply: "<1>"}, {match: "again", reply: "<2>"}, {reply: "<9>"}]
models:
  tiny: {backend: scratch, corpus: expert, context: 512, hidden_size: 16, layers: 1, heads: 1,
         vocab_size: 300}
stages:
  expert: {kind: expert, environment: plain, split: train, limit: 4}
  one: {kind: rollout, backend: verifiers, environment: sums, model: tiny, server: clerk,
        split: train, attempts: 2}
  several: {kind: rollout, backend: verifiers, environment: guessing, model: tiny,
            server: guesser, split: all, max_turns: 2}
  score: {kind: evaluate, backend: verifiers, environment: sums, model: tiny, server: clerk,
          split: train}
"""


def test_tasksets_of_one_turn_and_of_several(tmp_path: Path) -> None:
    for software in (VERIFIERS, TORCH):
        built_python(software)
    for name in ("sums.py", "guessing.py"):
        (tmp_path / name).write_text((HERE / name).read_text("utf-8"), "utf-8")
    spec, store = tmp_path / "spec.yaml", tmp_path / "store"
    spec.write_text(SPEC, "utf-8")
    assert main(["run", str(spec), "--store", str(store), "--plain"]) == 0

    one = rows(store, "one")
    assert [(row["id"], row["reward"], row["end"]) for row in one] == [
        ("sums_0#0", 1.0, "success"),
        ("sums_0#1", 1.0, "success"),
        ("sums_1#0", 1.0, "success"),
        ("sums_1#1", 1.0, "success"),
        ("sums_2#0", 0.0, "failure"),
        ("sums_2#1", 0.0, "failure"),
    ]
    assert one[2]["messages"] == [
        {"role": "user", "content": "What is 1 + 1?"},
        {"role": "assistant", "content": "It is 2."},
    ]
    several = rows(store, "several")
    assert [(row["reward"], row["turns"], row["end"]) for row in several] == [
        (0.0, 2, "limit"),
        (1.0, 1, "success"),
        (1.0, 2, "success"),
    ]
    assert several[2]["messages"] == [
        {"role": "user", "content": "Guess number 2."},
        {"role": "assistant", "content": "<9>"},
        {"role": "user", "content": "No. Guess again."},
        {"role": "assistant", "content": "<2>"},
    ]
    assert not any("unproved" in row for row in (*one, *several))
    [metrics] = store.glob("objects/evaluate/*/data/metrics.json")
    assert json.loads(metrics.read_text("utf-8"))["reward"]["mean"] == pytest.approx(2 / 3)


BY_VLLM = """\
agentc: 1
name: by_vllm
environments:
  plain: {backend: textcraft, max_expert_steps: 4}
  guessing: {backend: verifiers, taskset: guessing, sources: [guessing.py],
             splits: {all: {range: [0, 2]}}}
servers: {local: {backend: vllm, dtype: float32, enforce_eager: true}}
models:
  tiny: {backend: scratch, corpus: expert, context: 512, hidden_size: 128, layers: 1, heads: 2,
         vocab_size: 300, chat_format: chatml}
stages:
  expert: {kind: expert, environment: plain, split: train, limit: 4}
  score: {kind: evaluate, backend: verifiers, environment: guessing, model: tiny, split: all,
          max_turns: 2, decode: {temperature: 1.0, max_tokens: 16}}
"""


@pytest.mark.vllm
def test_a_taskset_is_played_by_a_model_on_vllm(tmp_path: Path) -> None:
    for software in (VERIFIERS, TORCH, VLLM):
        built_python(software)
    (tmp_path / "guessing.py").write_text((HERE / "guessing.py").read_text("utf-8"), "utf-8")
    spec, store = tmp_path / "spec.yaml", tmp_path / "store"
    spec.write_text(BY_VLLM, "utf-8")
    assert main(["run", str(spec), "--store", str(store), "--plain"]) == 0
    played = rows(store, "score:rollout")
    # It knows nothing, and what it says is drawn.
    assert [(row["reward"], row["turns"], row["end"]) for row in played] == [(0.0, 2, "limit")] * 2
    assert all(row["tokens"]["completion"] > 2 for row in played)
    [metrics] = store.glob("objects/evaluate/*/data/metrics.json")
    assert json.loads(metrics.read_text("utf-8"))["reward"]["mean"] == 0.0


def rows(store: Path, stage: str) -> list[dict[str, Any]]:
    for path in store.glob("objects/rollout/*/data/trajectories.jsonl"):
        made = json.loads((path.parents[1] / "artifact.json").read_text("utf-8"))
        if made["id"] == stage:
            return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    raise AssertionError(f"no rows of {stage}")
