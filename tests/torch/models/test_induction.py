"""The induction initialisation: an untrained model that continues what it has read before."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from agentc_backends.data.models.induction import wire_induction
from agentc_backends.data.models.job_scratch import _build

SETTINGS: dict[str, Any] = {
    "vocab_size": 768,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}


def repeated_loss(model: Any) -> float:
    """Mean loss, in nats, on the second of two equal stretches of 24 random tokens."""
    torch.manual_seed(1)
    stretch = torch.randint(3, SETTINGS["vocab_size"], (16, 24))
    ids = torch.cat([stretch, stretch], dim=1)
    with torch.no_grad():
        logits = model(ids).logits[:, 25:-1]
    return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 26:].flatten()))


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_an_untrained_model_copies(architecture: str) -> None:
    model = _build(architecture, SETTINGS)
    before = repeated_loss(model)
    wire_induction(model, seed=0)
    assert repeated_loss(model) < before - 1.0


def test_the_seed_decides_the_weights() -> None:
    models = [_build("llama", SETTINGS) for _ in range(3)]
    for model, seed in zip(models, (0, 0, 1), strict=True):
        wire_induction(model, seed=seed)
    first, same, other = ([p.detach() for p in model.parameters()] for model in models)
    assert all(torch.equal(a, b) for a, b in zip(first, same, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))
