"""Marked replies and trainers: a mask is honoured, or its loss is an error that names who does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.backend_api import (
    BackendTable,
    JobDraft,
    LowerContext,
    Software,
    StageBackend,
    StageView,
    load_backends,
)
from agentc.compilation import compile_spec
from agentc.diagnostics import render_text

SPEC = """\
agentc: 1
name: marks
models:
  base: {backend: hf, repo: some/model, revision: "0123456789012345678901234567890123456789"}
environments:
  craft: {backend: textcraft}
servers:
  local: {backend: transformers}
prompts:
  react: {instruction: Craft.}
stages:
  trees: {kind: search, model: base, split: train}
  fixed: {kind: revise, trees: trees, model: base, alpha: 0.5}
  sft:
    kind: sft
    backend: BACKEND
    model: base
    data: fixed
    loss_on: marked
    lr: 2e-5
    global_batch: 16
    max_length: 1024
    dtype: bfloat16
"""
NONE = Software(name="none", lock="")


def _plain(view: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    for name in ("lr", "global_batch", "max_length", "dtype"):
        view.get(name)
    if view.text("loss_on") == "marked":
        view.refuse("loss_on", "other.sft trains every reply", capability="marked")
    return ()


OTHER = StageBackend(
    id="other.sft", kind="sft", version=1, doc="Trains all.", software=NONE, lower=_plain
)


def compiled(folder: Path, backend: str) -> tuple[str, list[str]]:
    table = load_backends()
    path = folder / "marks.yaml"
    path.write_text(SPEC.replace("BACKEND", backend))
    result = compile_spec(path, {}, BackendTable({**table.backends, OTHER.id: OTHER}))
    found = [each.code for each in result.diagnostics if each.severity == "error"]
    return render_text(result.diagnostics), found


def test_a_trainer_without_marks_says_who_has_them(tmp_path: Path) -> None:
    text, codes = compiled(tmp_path, "other.sft")
    assert codes == ["AGC603"]
    assert "other.sft trains every reply" in text
    for name in ("openrlhf.sft", "trl.sft", "xtuner.sft"):
        assert f"`{name}`" in text


@pytest.mark.parametrize("backend", ["openrlhf.sft", "trl.sft", "xtuner.sft"])
def test_the_trainers_have_them(backend: str, tmp_path: Path) -> None:
    text, codes = compiled(tmp_path, backend)
    assert codes == [], text
