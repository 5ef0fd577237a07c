"""Models that environments ask: their tokens, the time that episodes wait for them, and the GPUs
that a shared server of theirs holds. And how many tasks a file has, of which keys know a digest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentc.backend_api import BackendTable
from agentc.compilation import compile_spec
from agentc.cost.estimate import Estimate, estimate_plan
from agentc.cost.place import Place
from agentc.cost.quantities import value
from agentc.cost.render import total_entry, total_lines
from agentc.cost.summary import Summary, summarise
from agentc.plan.render import plan_document

SPEC = """\
agentc: 1
name: asked
models:
  base: {{use: models/llama3_1_8b_instruct}}
  person: {{use: models/llama2_7b_chat}}
environments:
  city: {environment}
servers:
  local: {{backend: vllm}}
  human: {human}
prompts:
  react: {{instruction: Find out which city it is.}}
stages:
  play: {{kind: rollout, server: local, model: base, split: train, placement: {{gpus: 1}}}}
"""
ALONE = "{backend: guess_my_city}"
ASKING = "{backend: guess_my_city, oracle: model, simulator: {server: human, model: person}}"
SHARED = "{backend: vllm, scope: shared, placement: {gpus: 4}, tensor_parallel: 4}"


def found(folder: Path, table: BackendTable, environment: str) -> tuple[Estimate, Summary]:
    spec = folder / "asked.yaml"
    spec.write_text(SPEC.format(environment=environment, human=SHARED), encoding="utf-8")
    plan = compile_spec(spec, {}, table).plan
    assert plan is not None
    document = plan_document(plan)
    estimates = estimate_plan(document, None, table=table)
    return estimates["play"], summarise(document, estimates, Place(cores=2))


def test_a_model_that_is_asked_costs_tokens_time_and_its_gpus(
    tmp_path: Path, table: BackendTable
) -> None:
    alone, without = found(tmp_path, table, ALONE)
    asking, having = found(tmp_path, table, ASKING)
    assert alone.asked.median == 0
    # Each reply stands behind at least the 250 tokens of its own prompt.
    assert asking.asked.median > 100 * 250
    assert asking.tokens.median == pytest.approx(alone.tokens.median)
    assert asking.seconds.median > alone.seconds.median
    assert without.shared_gpu_hours == 0
    assert having.shared_gpu_hours == pytest.approx(asking.seconds.median * 4 / 3600)
    assert having.gpu_hours.median > 4 * asking.gpu_hours.median
    text = "\n".join(total_lines(having, 0))
    assert "tokens of models that environments ask" in text
    assert "of them shared servers'" in text
    assert "asked" not in "\n".join(total_lines(without, 0))
    assert total_entry(without)["asked_tokens"] == [0, 0, 0]


def test_tasks_of_a_file_are_counted_by_its_splits(tmp_path: Path, table: BackendTable) -> None:
    task = {
        "problem_description": "%d",
        "ground_truth": "def f(n): ...",
        "test_cases": {"a": "f(1)"},
    }
    row = json.dumps(task) + "\n"
    (tmp_path / "tasks.jsonl").write_text("".join(row % n for n in range(40)), encoding="utf-8")
    environment = (
        "{backend: colbench_backend, tasks: tasks.jsonl, splits: {train: {range: [0, %d]}}}"
    )
    small, large = (found(tmp_path, table, environment % end)[0] for end in (4, 40))
    assert large.tokens.median == pytest.approx(10 * small.tokens.median)


def test_a_ranking_that_loads_its_critic_itself_takes_a_start_of_torch(
    repository: Path, table: BackendTable
) -> None:
    spec = repository / "specs" / "sweet_rl" / "tiny.yaml"
    plan = compile_spec(spec, {}, table, scale="smoke").plan
    assert plan is not None
    estimates = estimate_plan(plan_document(plan), None, table=table)
    start = value("torch_start")
    assert start < estimates["ranked_by_head"].seconds.median < 2 * start
