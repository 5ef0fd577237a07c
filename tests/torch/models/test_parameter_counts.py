"""The compiler's counts of weights against the models themselves, on torch's meta device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen3Config,
)

from agentc.backend_api import Architecture
from agentc.memory import PUBLISHED_SHAPES, scratch_architecture

SMALL = {
    "hidden_size": 96, "layers": 3, "heads": 6, "kv_heads": 2, "intermediate_size": 160,
    "vocab_size": 512, "context": 128, "tie_embeddings": False, "architecture": "qwen2",
}  # fmt: skip


def counted(name: str, shape: Architecture) -> tuple[int, Any]:
    """Weights of the model, and the model."""
    settings = {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "intermediate_size": shape.intermediate,
        "vocab_size": shape.vocabulary,
        "tie_word_embeddings": shape.tied,
        "max_position_embeddings": shape.context,
    }
    if shape.vision:
        seen = Qwen2VLConfig(**settings, vision_config={"hidden_size": shape.hidden})
        with torch.device("meta"):
            seeing = Qwen2VLForConditionalGeneration(seen)
        return sum(parameter.numel() for parameter in seeing.parameters()), seeing
    of = Qwen2Config if shape.biased else MistralConfig if "mistral" in name else LlamaConfig
    of = Qwen3Config if shape.head_norms else of
    if not shape.biased:
        settings["head_dim"] = shape.head_size
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(of(**settings))
    return sum(parameter.numel() for parameter in model.parameters()), model


@pytest.mark.parametrize("name", PUBLISHED_SHAPES)
def test_published_models_have_as_many_weights(name: str) -> None:
    shape = PUBLISHED_SHAPES[name]
    assert counted(name, shape)[0] == shape.parameters


def test_new_models_have_as_many_weights() -> None:
    shape = scratch_architecture(SMALL.get)
    assert shape is not None
    assert counted("small", shape)[0] == shape.parameters


@pytest.mark.parametrize("targets", [(), ("q_proj", "v_proj"), ("down_proj",)])
def test_adapters_have_as_many_weights(targets: tuple[str, ...]) -> None:
    from peft import LoraConfig, get_peft_model

    shape = PUBLISHED_SHAPES["llama-3.2-1b"]
    _, model = counted("llama", shape)
    config = LoraConfig(r=4, target_modules=list(targets) or "all-linear", task_type="CAUSAL_LM")
    adapted = get_peft_model(model, config)
    trained = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
    assert trained == shape.adapters(4, targets)
