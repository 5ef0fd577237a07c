"""The numeric type of a finished checkpoint. Used by every trainer when it has trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentc_backends.trainers.common.endings import TrainingFailedError


def saved_as(word: str, usual: str) -> str:
    """The numeric type that a spec's `save_dtype` means; `usual` is that of `auto`."""
    return usual if word == "auto" else word


def save_as(model: Any, out: Path, dtype: str) -> None:
    """Write a whole model with its weights in `dtype`, which names it in the configuration too.
    Raises TrainingFailedError where that type cannot hold one of them."""
    import torch

    model.to(getattr(torch, dtype))
    if dtype == "float16":
        for name, weight in model.named_parameters():
            if not bool(torch.isfinite(weight).all()):
                raise TrainingFailedError(
                    f"save_dtype: float16 cannot hold the weights of {name}, which go beyond "
                    "65504; set bfloat16"
                )
    model.save_pretrained(str(out))
