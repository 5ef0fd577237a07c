"""What enters the key of an agent that is a program, what its job is told, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.cli import main

SPEC = """\
agentc: 1
name: harness
environments: {textcraft: {backend: textcraft}}
servers: {rules: {backend: scripted, rules: [{reply: "Action: inventory"}]}}
prompts: {react: {instruction: Craft., reply_format: react}}
models:
  base: {backend: scratch, architecture: llama, hidden_size: 32, layers: 1, heads: 2, context: 1024,
         vocab_size: 300, chat_format: chatml, corpus: expert}
stages:
  expert: {kind: expert, split: train, limit: 4}
  play:
    kind: KIND
    backend: command
    model: base
    split: train
    limit: 2
    max_turns: 3
    decode: {max_tokens: 64}
    options: {OPTIONS}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text("print(1)\n")
    (tmp_path / "beside.py").write_text("X = 1\n")
    (tmp_path / "six.lock").write_text("six==1.17.0 --hash=sha256:" + "4" * 64 + "\n")
    return tmp_path


def compiled(
    folder: Path, options: str, *, kind: str = "rollout", more: str = ""
) -> dict[str, dict[str, Any]] | None:
    spec = folder / "harness.yaml"
    spec.write_text(SPEC.replace("KIND", kind).replace("OPTIONS", options) + more)
    out = folder / "plan"
    if main(["bundle", "--bare", str(spec), "-o", str(out)]) != 0:
        return None
    document = json.loads((out / "plan.json").read_text("utf-8"))
    return {job["id"]: job for job in document["jobs"]}


def job(folder: Path, options: str, **words: str) -> dict[str, Any]:
    jobs = compiled(folder, options, **words)
    assert jobs is not None
    return jobs["play"]


def test_what_changes_the_key(folder: Path) -> None:
    plain = job(folder, "run: agent.py")
    assert job(folder, "run: agent.py, episode_s: 5")["key"] == plain["key"]
    keys = [plain["key"]]
    for options in ("run: agent.py, params: {a: 1}", "run: agent.py, sources: [beside.py]",
                    "command: [python3, agent.py], sources: [agent.py]"):  # fmt: skip
        keys.append(job(folder, options)["key"])
    (folder / "agent.py").write_text("print(2)\n")
    keys.append(job(folder, "run: agent.py")["key"])
    assert len(set(keys)) == len(keys)
    assert plain["config"]["files"] == [{"path": "agent.py", "text": "print(1)\n"}]
    assert plain["contract"]["network"] is True


def test_an_evaluation_keeps_what_is_not_proved(folder: Path) -> None:
    jobs = compiled(folder, "run: agent.py", kind="evaluate")
    assert jobs is not None
    rollout, metrics = jobs["play:rollout"], jobs["play"]
    assert rollout["config"]["keeps_all"] is True
    assert rollout["key"] != job(folder, "run: agent.py")["key"]
    assert "files" not in metrics["config"]["protocol"]
    assert set(metrics["config"]["protocol"]["program"]) == {"words", "params", "sha256"}


@pytest.mark.parametrize(
    ("options", "more", "message"),
    [
        ("params: {}", "", "needs a program"),
        ("run: agent.py, command: [sh]", "", "`run` says already"),
        ("run: none.py", "", "no readable file none.py"),
        ("run: agent.py, requirements: six.lock", "", "lacks httpx2 and starlette and uvicorn"),
        ("run: agent.py", "    on_overflow: drop_oldest\n", "for the program to decide"),
        ("run: agent.py", "    on_invalid: fail\n", "the program reads its own replies"),
    ],
)
def test_what_is_refused(folder: Path, capsys: Any, options: str, more: str, message: str) -> None:
    assert compiled(folder, options, more=more) is None
    assert message in capsys.readouterr().err
