"""An experiment whose agents talk to a model on a shared server, which may be killed meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EPISODES = 24
SPEC = """\
agentc: 1
name: human
environments:
  code: {backend: colbench_backend, family: prices, invented_tasks: 100, rounds: 3, human: model,
         human_max_tokens: 32, simulator: {server: human, model: base}}
servers:
  # Two that are not the same, or both rollouts would be one job.
  one: {backend: scripted, max_model_len: 1024, rules: RULES}
  other: {backend: scripted, max_model_len: 1025, rules: RULES}
  human: {backend: scripted, max_model_len: 4096, delay_s: 0.5, scope: shared,
          rules: [{reply: ["No.", "Yes.", I do not know.]}]}
models:
  base: {backend: scratch, corpus: words, hidden_size: 32, layers: 2, heads: 2, context: 4096,
         vocab_size: 384}
prompts:
  ask: {instruction: Ask., role: system, reply_format: text, observation_prefix: ""}
defaults: {split: train, limit: 12, attempts: 2, concurrency: 2,
           decode: {temperature: 1.0, max_tokens: 64}}
stages:
  words: {kind: dataset, backend: path, path: words.json, format: sharegpt}
  left: {kind: rollout, model: base, server: one, seed: 1}
  right: {kind: rollout, model: base, server: other, seed: 2}
"""
RULES = [
    {"turn": 0, "reply": ['Is "dog" priced?', 'Is "soup" priced?', "What is it?"]},
    {"turn": 1, "reply": ["Really?", "Why?"]},
    {"reply": "I WANT TO ANSWER:\nnone"},
]
WORDS = [{"conversations": [{"from": "human", "value": "?"}, {"from": "gpt", "value": "!"}]}]


def trajectories(store: Path) -> dict[str, bytes]:
    """Of each rollout, by its key."""
    files = (store / "objects" / "rollout").glob("*/data/trajectories.jsonl")
    return {file.parents[1].name: file.read_bytes() for file in files}


def begun(store: Path) -> int:
    """How many of the rollouts have episodes behind them, and some to come."""
    jobs = (store / "staging" / "rollout").glob("*")
    journals = [file for job in jobs for file in (job / "work").glob("*.jsonl")]
    return sum(len(file.read_bytes().splitlines()) > 2 for file in journals)


def told(store: Path) -> dict[str, Any]:
    """What the server says of itself."""
    [file] = (store / "servers").glob("*/*/1/state.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def write_spec(folder: Path) -> Path:
    """The spec, with what lies beside it."""
    spec = folder / "human.yaml"
    spec.write_text(SPEC.replace("RULES", json.dumps(RULES)), encoding="utf-8")
    (folder / "words.json").write_text(json.dumps(WORDS), encoding="utf-8")
    return spec
