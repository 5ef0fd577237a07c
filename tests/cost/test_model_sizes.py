"""How large a model is taken to be: by the files of its directory, by the store or the hub's cache;
where nobody knows, the estimate says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_folder import write_model_folder

from agentc.backend_api import BackendTable
from agentc.compilation import compile_spec
from agentc.cost import cost_table, estimate_plan, summarise
from agentc.cost.estimate import Estimate
from agentc.cost.place import Place
from agentc.cost.render import summary_sentence
from agentc.plan.render import plan_document
from agentc.runtime.store.layout import StoreLayout

Document = dict[str, Any]
COMMIT = "0123456789" * 4
SPEC = """
agentc: 1
name: sizes
environments: {craft: {backend: textcraft}}
prompts: {react: {instruction: Craft the goal.}}
stages:
  base: {kind: model, MODEL}
  expert: {kind: expert, split: train, limit: 8}
  sft: {kind: sft, model: base, data: expert, lr: 1e-5, global_batch: 4, max_length: 64}
"""
HUB = f"repo: acme/mystery, revision: {COMMIT}"
WEIGHTS = 12848


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache, empty."""
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf" / "hub"


@pytest.fixture
def document(tmp_path: Path, table: BackendTable) -> Callable[[str], Document]:
    def plan(model: str) -> Document:
        (tmp_path / "spec.yaml").write_text(SPEC.replace("MODEL", model))
        compiled = compile_spec(tmp_path / "spec.yaml", {}, table)
        assert compiled.plan is not None, compiled.diagnostics
        return plan_document(compiled.plan)

    return plan


def said(document: Document, found: dict[str, Estimate]) -> tuple[str, str]:
    summary = summarise(document, found, Place(cores=2))
    return cost_table(found, summary), summary_sentence(summary)


@pytest.mark.parametrize("folder", ["model", "llama-2-7b"])
def test_a_directory_is_as_large_as_its_files(
    folder: str, tmp_path: Path, document: Callable[[str], Document], table: BackendTable
) -> None:
    place = write_model_folder(tmp_path / folder)
    planned = document(f"path: {folder}")
    job = next(each for each in planned["jobs"] if each["id"] == "base")
    size = (place / "model.safetensors").stat().st_size
    assert job["model_size"] == {
        "parameters": WEIGHTS, "file_bytes": size, "layers": 1, "hidden": 16,
    }  # fmt: skip
    found = estimate_plan(planned, None, table=table)
    assert size < found["base"].disk.median < size + 1e5
    assert found["sft"].disk.median < 2e5
    assert summarise(planned, found, Place(cores=2)).disk.median < 1e6
    assert "unknown" not in "".join(said(planned, found))


def test_a_model_that_nobody_knows_is_named(
    document: Callable[[str], Document], table: BackendTable
) -> None:
    planned = document(HUB)
    found = estimate_plan(planned, None, table=table)
    assert found["sft"].basis == "prior, size of the model unknown"
    for text in said(planned, found):
        assert "size of acme/mystery unknown: 7 billion weights are assumed" in text


def test_the_cache_of_the_hub_knows_it(
    cache: Path, document: Callable[[str], Document], table: BackendTable
) -> None:
    write_model_folder(cache / "models--acme--mystery" / "snapshots" / COMMIT)
    planned = document(HUB)
    found = estimate_plan(planned, None, table=table)
    assert found["sft"].disk.median < 2e5
    assert "unknown" not in "".join(said(planned, found))


@pytest.mark.parametrize(
    ("facts", "largest"),
    [({"parameters": WEIGHTS, "weight_bytes": 52656}, 2e5), ({"weight_bytes": 52656}, 3e5)],
)
def test_the_store_knows_it(
    facts: dict[str, int],
    largest: float,
    finish: Callable[..., Path],
    document: Callable[[str], Document],
    table: BackendTable,
) -> None:
    planned = document(HUB)
    store = finish(planned, "base", wall_s=2.0, facts=facts)
    found = estimate_plan(planned, StoreLayout(store), table=table)
    assert found["base"].state == "cached"
    assert found["sft"].disk.median < largest
    assert "unknown" not in "".join(said(planned, found))


def test_the_store_knows_it_under_another_key(
    finish: Callable[..., Path], document: Callable[[str], Document], table: BackendTable
) -> None:
    other = document(f"{HUB}, chat_format: chatml")
    store = finish(other, "base", wall_s=2.0, facts={"parameters": WEIGHTS})
    planned = document(HUB)
    found = estimate_plan(planned, StoreLayout(store), table=table)
    assert found["base"].state == "run"
    assert found["sft"].disk.median < 2e5
