"""Estimates of search, revision and mixtures: bounded by their settings, corrected by the past."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import BackendTable
from agentc.compilation import compile_spec
from agentc.cost import estimate_plan
from agentc.cost.amounts import Rows
from agentc.cost.subject import subject_of_job
from agentc.cost.trees import forecast_dataset
from agentc.plan.render import plan_document
from agentc.runtime.store.layout import StoreLayout

SPEC = """\
agentc: 1
name: trees
params:
  seed: {type: int, default: 0}
  depth: {type: int, default: 8}
  iterations: {type: int, default: 4}
  children: {type: int, default: 3}
  once_per: {type: str, default: path}
  cap: {type: int, default: 100000}
environments: {craft: {backend: textcraft}}
servers: {local: {backend: transformers}}
models:
  base: {backend: hf, repo: meta-llama/Llama-3.1-8B-Instruct,
         revision: 0123456789012345678901234567890123456789}
stages:
  search: {kind: search, model: base, split: train, limit: 50, depth: "{{ depth }}",
           iterations: "{{ iterations }}", children: "{{ children }}", seed: "{{ seed }}",
           placement: {gpus: 1}}
  revise: {kind: revise, trees: search, model: base, alpha: 0.5, max_revision: "{{ cap }}",
           judge: {once_per: "{{ once_per }}"}, placement: {gpus: 1}}
  general: {kind: dataset, backend: path, path: general.jsonl, limit: 5000,
            format: prompt_completion}
  mixture: {kind: mix, agent: revise, general: general, general_share: 0.8, share_of: total,
            on_shortage: fewer}
  sft: {kind: sft, backend: trl, model: base, data: mixture, lr: 1e-5, global_batch: 8,
        max_length: 2048, loss_on: marked, placement: {gpus: 1}}
"""
TALK = '{"prompt": "How many doors?", "completion": "Three."}\n'
Plan = Callable[..., dict[str, Any]]


@pytest.fixture
def plan(tmp_path: Path, table: BackendTable) -> Plan:
    """plan.json of the spec, with values of its params."""
    (tmp_path / "trees.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "general.jsonl").write_text(TALK * 5000, encoding="utf-8")

    def planned(**params: str) -> dict[str, Any]:
        compiled = compile_spec(tmp_path / "trees.yaml", params, table)
        assert compiled.plan is not None, compiled.diagnostics
        return plan_document(compiled.plan)

    return planned


@pytest.mark.parametrize(
    ("name", "more"), [("depth", "16"), ("iterations", "8"), ("children", "6")]
)
def test_a_larger_search_reads_and_writes_more(
    plan: Plan, table: BackendTable, name: str, more: str
) -> None:
    few = estimate_plan(plan(), None, table=table)["search"]
    many = estimate_plan(plan(**{name: more}), None, table=table)["search"]
    assert many.tokens.median > 1.5 * few.tokens.median
    assert many.seconds.median > few.seconds.median


def test_judging_each_pair_anew_costs_more(plan: Plan, table: BackendTable) -> None:
    once = estimate_plan(plan(), None, table=table)["revise"]
    anew = estimate_plan(plan(once_per="pair"), None, table=table)["revise"]
    assert anew.tokens.median > 1.5 * once.tokens.median
    assert anew.seconds.median > once.seconds.median


def test_caps_bound_what_is_trained(plan: Plan, table: BackendTable) -> None:
    free = estimate_plan(plan(), None, table=table)["sft"]
    capped = estimate_plan(plan(cap="20"), None, table=table)["sft"]
    assert capped.tokens.median < free.tokens.median / 2


def test_what_a_search_took_tells_of_the_next(
    plan: Plan, table: BackendTable, finish: Callable[..., Path]
) -> None:
    before, document = plan(seed="1"), plan(seed="2")
    prior = estimate_plan(document, None, table=table)
    facts = {"trees": 50, "samples": 50, "leaves": 50, "completion_tokens": 1000,
             "prompt_tokens": 20000}  # fmt: skip
    finish(before, "base", wall_s=60.0, facts={"parameters": 8.03e9})
    card = {"cpus": 2, "gpus": ["NVIDIA A100-SXM4-80GB"]}
    store = finish(before, "search", wall_s=90.0, facts=facts, hardware=card)
    found = estimate_plan(document, StoreLayout(store), table=table)
    assert found["search"].tokens.median < prior["search"].tokens.median / 3
    assert found["search"].tokens.low < 21000 < found["search"].tokens.high
    assert found["revise"].tokens.median < prior["revise"].tokens.median


def test_a_finished_revision_counts_its_rows(
    plan: Plan, table: BackendTable, finish: Callable[..., Path]
) -> None:
    document = plan()
    facts = {"trees": 50, "rows": 12, "judgements": 30, "judge_prompt_tokens": 9000,
             "judge_completion_tokens": 900}  # fmt: skip
    store = finish(document, "revise", wall_s=40.0, facts=facts)
    found = estimate_plan(document, StoreLayout(store), table=table)
    prior = estimate_plan(document, None, table=table)
    assert found["revise"].basis == "in the store"
    # Twelve rows and four times as many general ones.
    assert found["sft"].tokens.median < prior["sft"].tokens.median / 5


@pytest.mark.parametrize(("limit", "rows"), [("5000", 3), ("2", 2)])
def test_the_rows_of_a_local_file_are_counted(
    limit: str, rows: int, plan: Plan, tmp_path: Path
) -> None:
    """Estimates were of 10,000 rows, or of `limit`, whatever the file held."""
    (tmp_path / "general.jsonl").write_text(TALK * 3, encoding="utf-8")
    spec = (tmp_path / "trees.yaml").read_text("utf-8")
    (tmp_path / "trees.yaml").write_text(spec.replace("limit: 5000", f"limit: {limit}"), "utf-8")
    (job,) = (job for job in plan()["jobs"] if job["id"] == "general")
    found = forecast_dataset(subject_of_job(job, "a100"))
    assert (found.rows.median, found.rows.spread) == (rows, 0.0)
    assert isinstance(found.output, Rows)
    assert found.output.tokens.median == pytest.approx(len("How many doors?Three.") / 4, abs=0.3)
