"""The model of a config.json without memory for its weights, as each software stack's own
transformers makes it."""

from __future__ import annotations

from typing import Any


def meta_model(folder: str, **options: Any) -> Any:
    """The model, with `options` as `from_pretrained` would take them."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, **options)


def facts_of(model: Any) -> dict[str, Any]:
    """What a model says of itself."""
    return {
        "weights": sum(each.numel() for each in model.parameters()),
        "trained": sum(each.numel() for each in model.parameters() if each.requires_grad),
        "context": model.config.max_position_embeddings,
        "attention": model.config._attn_implementation,
        "checkpointing": model.is_gradient_checkpointing,
    }
