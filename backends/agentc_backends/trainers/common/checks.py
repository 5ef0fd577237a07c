"""How a training can end without its weights. `program.py` tells people, or the wrapper."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.util import find_spec


class TrainingOutOfTimeError(Exception):
    """Training stopped before its time limit, with a whole checkpoint saved."""


class TrainingFailedError(RuntimeError):
    """Training ended without the trained weights; the message says why, and is for people."""


class TrainingDivergedError(TrainingFailedError):
    """A number of a step, such as its loss or its gradient's norm, became infinite or none."""


_REMEDY = "lower lr, raise warmup_ratio or lower max_grad_norm"


def require_finite(step: int, numbers: Mapping[str, float]) -> None:
    """Raise TrainingDivergedError unless all numbers of a step are finite. `numbers` hold the
    `loss`, which the message names in any case: a gradient may be lost before the loss is."""
    lost = [name for name, value in numbers.items() if not math.isfinite(value)]
    if lost:
        others = "".join(f", {name} {numbers[name]}" for name in lost if name != "loss")
        raise TrainingDivergedError(
            f"the loss is {numbers['loss']} at step {step}{others}; {_REMEDY}"
        )


def skipped_update_error(step: int, loss: float) -> TrainingDivergedError:
    """A step that the optimiser left out, for its gradient is infinite or no number."""
    return TrainingDivergedError(
        f"the gradient is not finite at step {step}, where the loss is {loss}; {_REMEDY}"
    )


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
