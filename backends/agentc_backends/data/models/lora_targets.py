"""Checks `lora.targets` against the modules of a model, before a trainer loads its weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentc.runtime.model_folder.lora_targets import target_faults
from agentc_backends.data.models.checkpoint import CheckpointError

_ADAPTABLE = ("Linear", "Embedding", "Conv1D", "Conv1d", "Conv2d", "Conv3d")
"""Classes of modules that PEFT puts adapters on."""


def require_lora_targets(directory: Path, targets: Sequence[str]) -> None:
    """Raise CheckpointError unless each target is the name of modules of the model that PEFT can
    adapt. The model is made without weights."""
    if not targets:
        return
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(str(directory), trust_remote_code=False)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    modules = [name for name, each in model.named_modules() if type(each).__name__ in _ADAPTABLE]
    tied = model.get_input_embeddings().weight is getattr(
        model.get_output_embeddings(), "weight", None
    )
    faults = target_faults(targets, modules, tied, exact=True)
    if faults:
        raise CheckpointError("; ".join(map(str, faults)))
