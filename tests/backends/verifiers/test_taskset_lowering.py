"""What enters the key of a taskset's episodes, what its job is told, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.cli import main

SPEC = """\
agentc: 1
name: tasksets
environments:
  textcraft: {backend: textcraft}
  sums: {backend: verifiers, taskset: sums, sources: [sums.py],
         splits: {test: {range: [2, 5]}}ENTRY}
servers: {rules: {backend: scripted, rules: [{reply: "4"}]}}
models:
  base: {backend: scratch, architecture: llama, hidden_size: 32, layers: 1, heads: 2, context: 1024,
         vocab_size: 300, chat_format: chatml, corpus: expert}
stages:
  expert: {kind: expert, environment: textcraft, split: train, limit: 4}
  play: {kind: rollout, backend: verifiers, environment: sums, model: base, split: testSTAGE}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sums.py").write_text("X = 1\n")
    return tmp_path


def compiled(folder: Path, *, entry: str = "", stage: str = "", **words: str) -> Any:
    text = SPEC.replace("ENTRY", entry).replace("STAGE", stage)
    for old, new in words.items():
        text = text.replace(old, new)
    spec, out = folder / "tasksets.yaml", folder / "plan"
    spec.write_text(text)
    if main(["bundle", "--bare", str(spec), "-o", str(out)]) != 0:
        return None
    document = json.loads((out / "plan.json").read_text("utf-8"))
    return {job["id"]: job for job in document["jobs"]}


def test_what_changes_the_key(folder: Path) -> None:
    plain = compiled(folder)["play"]
    assert compiled(folder, stage=", options: {episode_s: 5}")["play"]["key"] == plain["key"]
    keys = [plain["key"]]
    for words in (
        {"entry": ", config: {hard: true}"},
        {"entry": ", reward: {scale: 0.5}"},
        {"stage": ", max_turns: 3"},
        {"stage": ', options: {harness: {id: "null"}}'},
    ):
        keys.append(compiled(folder, **words)["play"]["key"])
    (folder / "sums.py").write_text("X = 2\n")
    keys.append(compiled(folder)["play"]["key"])
    assert len(set(keys)) == len(keys)


def test_the_job_is_told_the_taskset_and_leases_no_environment(folder: Path) -> None:
    job = compiled(folder)["play"]
    world = job["config"]["world"]
    assert world["files"] == [{"path": "sums.py", "text": "X = 1\n"}]
    assert (world["taskset"], world["splits"]) == ("sums", {"test": "2-4"})
    assert [lease["role"] for lease in job["leases"]] == ["policy"]


def test_an_evaluation_records_the_taskset(folder: Path) -> None:
    jobs = compiled(folder, **{"kind: rollout": "kind: evaluate"})
    assert jobs["play:rollout"]["config"]["keeps_all"] is True
    protocol = jobs["play"]["config"]["protocol"]
    assert "world" not in protocol
    assert protocol["environment"]["taskset"] == "sums"
    assert set(protocol["environment"]["sources"]) == {"sums.py"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"stage": ", prompt_seed: 3"}, "has one prompt"),
        ({"stage": ", on_invalid: fail"}, "the taskset reads the replies"),
        ({"environment: sums": "environment: textcraft"}, "no taskset of verifiers"),
        ({"backend: verifiers, environment": "backend: react, environment"}, "never step by step"),
        ({"entry": ", reward: {kind: max}"}, "one reward"),
        ({"entry": ", config: {id: other}"}, "`taskset` says it"),
        ({"sources: [sums.py]": "sources: [none.py]"}, "no readable file none.py"),
    ],
)
def test_what_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: dict[str, str], message: str
) -> None:
    assert compiled(folder, **words) is None
    assert message in capsys.readouterr().err
