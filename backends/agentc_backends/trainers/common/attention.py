"""Implementations of attention: their names, and whether this software environment has one, which
jobs ask before they load a model. Imports nothing heavy: lowering uses it too."""

from __future__ import annotations

from importlib.util import find_spec

from agentc_backends.trainers.common.endings import TrainingFailedError


def attention_named(word: str) -> str:
    """transformers' name of what a spec calls `word`."""
    return {"auto": "sdpa", "flash": "flash_attention_2"}.get(word, word)


def require_attention(implementation: str) -> None:
    """`implementation` is transformers' name of it. Raises TrainingFailedError."""
    if implementation == "flash_attention_2" and find_spec("flash_attn") is None:
        raise TrainingFailedError(
            "attention: flash takes the package flash-attn, which this software environment does "
            "not hold; put it into a lock of your own (`software:`), or set attention: sdpa"
        )
