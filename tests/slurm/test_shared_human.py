"""A human that is a model, as a shared server on a real SLURM: it dies while agents talk to it.

Its clients wait for the next one and go on: no episode counts as failed, and what they make is what
they make where nothing dies.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from smoke import agentc, require_software
from tests.slurm.cluster import Cluster
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import processes_of

pytestmark = [pytest.mark.slow, pytest.mark.slurm, pytest.mark.long]

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
  left: {kind: rollout, policy: base, server: one, seed: 1}
  right: {kind: rollout, policy: base, server: other, seed: 2}
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


def at_work(store: Path) -> bool:
    """Whether both rollouts have episodes behind them, and some to come."""
    journals = [*(store / "staging" / "rollout").glob("*/work/*.jsonl")]
    return sum(len(file.read_bytes().splitlines()) > 2 for file in journals) == 2


def told(store: Path) -> dict[str, Any]:
    """What the server says of itself."""
    [file] = (store / "servers").glob("*/*/1/state.json")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_a_human_that_dies_is_waited_for(tmp_path: Path, cluster: Cluster, profile: Path) -> None:
    require_software("model.scratch")
    spec = tmp_path / "human.yaml"
    spec.write_text(SPEC.replace("RULES", json.dumps(RULES)), encoding="utf-8")
    (tmp_path / "words.json").write_text(json.dumps(WORDS), encoding="utf-8")
    file = profile / "config.yaml"
    text = file.read_text().replace("mem_mb: 1000, runtime: 5", "mem_mb: 8000, runtime: 60")
    file.write_text(
        text.replace("slurm_partition: short", "slurm_partition: main")
        + "set-resources:\n  server:\n    slurm_extra: \"'--exclude=n1,n2'\"\n"
    )
    calm, store = tmp_path / "calm", tmp_path / "store"
    agentc("run", spec, "--store", calm, "--plain")
    before = {job.id for job in cluster.history()}
    command = Path(sys.executable).with_name("agentc")
    words: list[str | Path] = ["run", spec, "--plain", "--store", store, "--profile", profile]
    process = subprocess.Popen(
        [command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        wait_for(lambda: at_work(store) or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]
        pids = [told(store)["pid"]]
        pids += [pid for pid, line in processes_of(store).items() if "--delay 0.5" in line]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 0, said
    jobs = [job for job in cluster.history() if job.id not in before]
    servers = [job for job in jobs if job.name.startswith("agentc-server-human")]
    assert [job.state for job in servers] == ["FAILED", "COMPLETED"]
    made = trajectories(store)
    assert len(made) == 2
    for key, content in made.items():
        rows = [json.loads(line) for line in content.splitlines()]
        assert len(rows) == EPISODES
        assert {row["error"] for row in rows} == {None}
        assert {row["report"]["human"]["replies"] for row in rows} == {2}
        manifest = json.loads(
            (store / "objects" / "rollout" / key / "artifact.json").read_text("utf-8")
        )
        assert manifest["attempts"] > 1, "it went on from its journal"
    assert made == trajectories(calm)
    assert cluster.queue() == []
