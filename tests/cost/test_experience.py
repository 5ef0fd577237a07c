"""Estimates of learning from recorded episodes go by what is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentc.backend_api import BackendTable
from agentc.compilation import compile_spec
from agentc.cost import estimate_plan
from agentc.plan.render import plan_document

SPEC = """\
agentc: 1
name: recorded
environments: {corridor: {backend: corridor}}
prompts: {way_out: {instruction: Go., acknowledgement: OK, reply_format: text}}
models: {base: {backend: scratch, hidden_size: 64, heads: 2, context: 512, corpus: [expert]}}
stages:
  expert: {kind: expert, environment: corridor, prompt: way_out, split: train, attempts: 4}
  run: {kind: offline_rl, model: base, data: expert, MORE}
"""
Seconds = Callable[[str], float]


@pytest.fixture
def seconds(tmp_path: Path, table: BackendTable) -> Seconds:
    """The expected time of a run with these settings."""

    def estimated(more: str) -> float:
        (tmp_path / "spec.yaml").write_text(SPEC.replace("MORE", more), encoding="utf-8")
        compiled = compile_spec(tmp_path / "spec.yaml", {}, table)
        assert compiled.plan is not None, compiled.diagnostics
        return estimate_plan(plan_document(compiled.plan), None, table=table)["run"].seconds.median

    return estimated


@pytest.mark.parametrize(
    ("few", "more"),
    [
        ("iterations: 20", "iterations: 60"),
        ("iterations: 20, critic: {batch: 64}", "iterations: 20, critic: {batch: 512}"),
        ("iterations: 20, actor: {updates: 10}", "iterations: 20, actor: {updates: 100}"),
        ("iterations: 20, warmup: 19", "iterations: 20"),
        ("iterations: 20, buffer: {by: episodes}", "iterations: 20"),
    ],
)
def test_more_that_is_read_takes_longer(few: str, more: str, seconds: Seconds) -> None:
    assert seconds(more) > 1.3 * seconds(few)
