"""`rollout.command` with a real model and a real client, on the embedded server and on vLLM: an
agent that uses the official `openai` package plays what `rollout.react` plays, and what is trained
on its rows is the same model."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from smoke import agentc, require_software
from tests.support.built_software import built_python

from agentc.backend_api import Software

HERE = Path(__file__).parent
LOCK = HERE.parent / "backends" / "servers" / "openai_clients.lock"
# Its stop texts end some replies in the middle of an action: what these do not begin with was drawn
# with its own end.
SPEC = """\
agentc: 1
name: harness
environments:
  textcraft:
    {backend: textcraft, max_depth: 2, max_expert_steps: 4, distractors: 3,
     expert_style: recipe_first}
servers: {local: SERVER}
prompts:
  act: {instruction: Craft the goal., reply_format: action_only}
defaults:
  max_length: 1024
  truncation: drop
  global_batch: 8
  decode: {temperature: 1.0, max_tokens: 32, stop: [" using 2", " using 3", " using 5", " using 6"]}
  max_turns: 5
models:
  base: {backend: scratch, architecture: llama, initialisation: induction, hidden_size: 128,
         layers: 2, heads: 2, context: 1024, vocab_size: 768, chat_format: chatml, corpus: expert}
stages:
  expert: {kind: expert, split: train, limit: 48, max_turns: null}
  sft: {kind: sft, model: base, data: expert, lr: 3e-3, max_steps: 60, adam_beta2: 0.98}
  react: {kind: rollout, model: sft, split: train, limit: 12,
          options: {invalid_message: Say what to do.}}
  whole: {kind: rollout, backend: command, model: sft, split: train, limit: 12, options: PROGRAM}
  streamed: {kind: rollout, backend: command, model: sft, split: train, limit: 12,
             options: STREAMING}
  same: {kind: script, run: rows_that_both_have.py, output: trajectories,
         inputs: {episodes: react, proved: streamed}}
  after_react: {kind: sft, model: sft, data: same, lr: 1e-3, max_steps: 2}
  after_streamed: {kind: sft, model: sft, data: streamed, lr: 1e-3, max_steps: 2}
"""
# vLLM's arithmetic depends on what else is in a batch and on what was computed before.
SERVERS = {
    "transformers": "{backend: transformers}",
    "vllm": "{backend: vllm, dtype: float32, enforce_eager: true, enable_prefix_caching: false, "
    "max_num_seqs: 1}",
}
OTHER = ("proved", "unproved", "tokens_per_s", "log_prob_agreement")
"""Facts of `rollout.command` alone, and those that need not repeat."""

SAME = """\
import json, sys
from pathlib import Path

stage = json.loads(Path(sys.argv[1]).read_text("utf-8"))
rows, proved = (
    Path(stage["inputs"][name][0]["folder"], "trajectories.jsonl").read_text("utf-8").splitlines()
    for name in ("episodes", "proved")
)
ids = {json.loads(row)["id"] for row in proved}
kept = [row + "\\n" for row in rows if json.loads(row)["id"] in ids]
Path(stage["output"]["folder"], "trajectories.jsonl").write_text("".join(kept), "utf-8")
"""


def program(*, stream: bool) -> str:
    """The options of a stage that lets the agent play."""
    return json.dumps({
        "run": "openai_crafter.py",
        "requirements": "openai_clients.lock",
        "params": {"stream": stream, "invalid": "Say what to do."},
    })  # fmt: skip


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("server", ["transformers", pytest.param("vllm", marks=pytest.mark.vllm)])
def test_an_agent_of_others_plays_and_teaches_as_our_own(tmp_path: Path, server: str) -> None:
    require_software("trl.sft")
    require_software(f"serve.{server}")
    built_python(Software(name="openai-clients", lock=LOCK.read_text("utf-8")))
    shutil.copy(LOCK, tmp_path)
    shutil.copy(HERE / "openai_crafter.py", tmp_path)
    (tmp_path / "rows_that_both_have.py").write_text(SAME, encoding="utf-8")
    spec, store = tmp_path / "harness.yaml", tmp_path / "store"
    text = SPEC.replace("SERVER", SERVERS[server]).replace("PROGRAM", program(stream=False))
    spec.write_text(text.replace("STREAMING", program(stream=True)), encoding="utf-8")
    agentc("run", spec, "--store", store, "--plain")

    played = made(store, "rollout")
    # Each was played, so that nothing is compared with itself.
    streams = [manifest["config"].get("params", {}).get("stream") for _, manifest in played]
    assert sorted(map(str, streams)) == ["False", "None", "True"]
    texts = {
        str(manifest["config"].get("params", {}).get("stream")): data / "trajectories.jsonl"
        for data, manifest in played
    }
    whole, streamed = (texts[name].read_bytes() for name in ("False", "True"))
    assert whole == streamed
    # A row that is left out is one of which other tokens were drawn than its words are written in:
    # such a small model spells.
    [(refused, facts)] = {
        ((data / "refused.jsonl").read_text("utf-8"), json.dumps(facts_of(manifest)))
        for data, manifest in played
        if (data / "refused.jsonl").exists()
    }
    left_out = [json.loads(line) for line in refused.splitlines()]
    assert {each["reason"] for each in left_out} <= {"retokenised"}
    ids = {each["id"] for each in left_out}
    native = texts["None"].read_bytes().splitlines(keepends=True)
    assert len(native) == 12
    kept = [line for line in native if json.loads(line)["id"] not in ids]
    assert b"".join(kept) == whole
    [react] = [manifest for _, manifest in played if "proved" not in manifest["facts"]]
    assert facts_of(react) == json.loads(facts)

    # What would make the comparison an empty one.
    rows = [json.loads(line) for line in kept]
    assert len(rows) >= 3
    replies = [m["content"] for row in rows for m in row["messages"] if m["role"] == "assistant"]
    stopped = [reply for reply in replies if re.fullmatch(r"craft [a-z ]+", reply)]
    assert 0 < len([reply for reply in stopped if " using" not in reply]) < len(replies)
    assert len(set(replies)) > 5

    learnt = {tuple(manifest["inputs"]["data"]) for _, manifest in made(store, "sft")}
    assert len(learnt) == 3  # other inputs: neither was taken for the other
    weights = [(data / "model.safetensors").read_bytes() for data, _ in made(store, "sft")]
    assert sorted(map(weights.count, weights)) == [1, 2, 2]


def facts_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """What both kinds of rollout say, and say of the same."""
    told = manifest["facts"]
    return {name: told[name] for name in told if name not in OTHER}


def made(store: Path, kind: str) -> list[tuple[Path, dict[str, Any]]]:
    """The data and the manifest of each object of a kind."""
    return [
        (path.parent / "data", json.loads(path.read_text(encoding="utf-8")))
        for path in sorted((store / "objects" / kind).glob("*/artifact.json"))
    ]
