"""Evaluators of others, unmodified, in whole runs: their packages, in the software of their locks,
ask a server that answers by rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.built_software import built_python

from agentc.cli import main
from agentc_backends.software import INSPECT, LM_EVAL, TORCH

pytestmark = pytest.mark.long

SPEC = """\
agentc: 1
name: sums
environments: {plain: {backend: textcraft, max_expert_steps: 4}}
servers:
  clerk:
    backend: scripted
    rules:
      - {match: "1\\\\+1", reply: "2"}
      - {match: "2\\\\+2", reply: "4"}
      - {match: "3\\\\+4", reply: "8"}
  silent: {backend: scripted}
models:
  tiny: {backend: scratch, corpus: expert, context: 512, hidden_size: 16, layers: 1, heads: 1,
         vocab_size: 300}
stages:
  expert: {kind: expert, environment: plain, split: train, limit: 4}
  asked: {kind: benchmark, model: tiny, server: clerk, SETTINGS}
  unasked: {kind: benchmark, model: tiny, server: silent, SETTINGS}
  table: {kind: compare, of: [asked], baseline: unasked}
claims:
  half: {what: half of the sums, stage: asked, difference_from: unasked, value: 0.5, n: 4,
         tolerance: 0.1}
"""
SUMS = [("1+1", "2"), ("2+2", "4"), ("3+4", "7"), ("5+4", "9")]
LM_EVAL_TASK = """\
task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "What is {{question}}?"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 8}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
"""
INSPECT_TASK = """\
from asked import QUESTION
from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate, prompt_template


@task
def sums(polite: str = ""):
    return Task(
        dataset=json_dataset("sums.jsonl"),
        solver=[prompt_template(polite + QUESTION), generate(cache=True)],
        scorer=match(),
        version=2,
    )
"""


def run(folder: Path, settings: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The metrics of each stage by its name, after a run that must succeed."""
    monkeypatch.setenv("HF_HOME", str(folder / "hf"))
    spec, store = folder / "spec.yaml", folder / "store"
    spec.write_text(SPEC.replace("SETTINGS", settings), "utf-8")
    assert main(["run", str(spec), "--store", str(store), "--plain"]) == 0
    found = {}
    for path in store.glob("objects/benchmark/*/data/metrics.json"):
        stage = json.loads((path.parents[1] / "artifact.json").read_text("utf-8"))["id"]
        found[str(stage)] = json.loads(path.read_text("utf-8"))
    return found


def test_lm_eval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for software in (LM_EVAL, TORCH):
        built_python(software)
    (tmp_path / "sums.yaml").write_text(LM_EVAL_TASK)
    rows = (json.dumps({"question": q, "answer": a}) for q, a in SUMS)
    (tmp_path / "sums.jsonl").write_text("".join(f"{row}\n" for row in rows))
    settings = "tasks: [sums.yaml], sources: [sums.jsonl], success_at: 1"
    metrics = run(tmp_path, settings, monkeypatch)
    assert metrics["asked"]["reward"]["mean"] == 0.5
    assert metrics["unasked"]["reward"]["mean"] == 0.0
    scores = {task: each["reward"] for task, each in metrics["asked"]["tasks"].items()}
    assert scores == {"sums/0": 1.0, "sums/1": 1.0, "sums/2": 0.0, "sums/3": 0.0}
    assert metrics["asked"]["protocol"] == metrics["unasked"]["protocol"]
    assert "+0.500" in capsys.readouterr().out


def test_inspect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for software in (INSPECT, TORCH):
        built_python(software)
    # Settings of whoever runs it are no part of the stage: neither variables nor a file above.
    monkeypatch.setenv("INSPECT_EVAL_LIMIT", "1")
    (tmp_path / ".env").write_text("INSPECT_EVAL_SAMPLE_ID=1\n")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "sums.py").write_text(INSPECT_TASK)
    (tmp_path / "tasks" / "asked.py").write_text('QUESTION = "What is {prompt}?"\n')
    rows = (json.dumps({"input": q, "target": a}) for q, a in SUMS)
    (tmp_path / "tasks" / "sums.jsonl").write_text("".join(f"{row}\n" for row in rows))
    settings = (
        "backend: inspect, tasks: [tasks/sums.py@sums], success_at: 1, "
        "sources: [tasks/asked.py, tasks/sums.jsonl], "
        "options: {epochs: 2, params: {polite: 'Please: '}}"
    )
    metrics = run(tmp_path, settings, monkeypatch)
    assert metrics["asked"]["reward"]["mean"] == 0.5
    assert metrics["unasked"]["reward"]["mean"] == 0.0
    scores = {task: each["reward"] for task, each in metrics["asked"]["tasks"].items()}
    assert scores == {"sums/1": 1.0, "sums/2": 1.0, "sums/3": 0.0, "sums/4": 0.0}
    assert {each["attempts"] for each in metrics["asked"]["tasks"].values()} == {2}
    assert metrics["asked"]["environment"] == "inspect"
    protocol = metrics["asked"]["protocol"]
    assert protocol == metrics["unasked"]["protocol"]
    assert (protocol["measured_by"], protocol["metric"]) == ("inspect 0.3.285", "match")
    told = protocol["tasks"]["sums"]
    assert (told["version"], told["params"]) == ("2", {"polite": "Please: "})
    assert told["solvers"] == ["prompt_template", "generate"]
    assert "+0.500" in capsys.readouterr().out
