"""The model card of a model that comes from a GGUF file."""

from __future__ import annotations

from pathlib import Path

from agentc.published.model_card import CardFacts, model_card
from agentc.store.objects import Lineage, StoredObject


def test_the_card_names_the_quantisation_and_the_file() -> None:
    manifest = {
        "id": "base",
        "kind": "model",
        "backend": "model.gguf",
        "version": 1,
        "identity": {"settings": {}},
        "facts": {
            "quantisation": "Q4_1",
            "gguf_sha256": "b1" * 32,
            "licence": "apache-2.0",
            "source": {"repo": "a/b-GGUF", "file": "b.Q4_1.gguf"},
        },
    }
    stored = StoredObject(name="model/0", path=Path("model/0"), manifest=manifest)
    card = model_card(
        CardFacts(
            repository="me/tuned",
            stage="base",
            lineage=Lineage(objects=(stored,), missing=()),
            evaluations=(),
            experiment={},
            rerun=("agentc", "run", "spec.yaml"),
            spec_name="spec.yaml",
            spec_sha256="0" * 64,
        )
    )
    assert "base_model:\n- a/b-GGUF\n" in card
    assert "weights: dequantised from Q4_1 (GGUF), not the original ones; `repo: a/b-GGUF`" in card
    assert f"SHA-256 `{'b1' * 32}`" in card
    assert "licence of the file: apache-2.0" in card
