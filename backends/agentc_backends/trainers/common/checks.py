"""How a training can end without its weights, and the checks that end it: numbers that are not
finite, and an implementation of attention that is missing. Imports nothing heavy: lowering uses it
too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.util import find_spec


class TrainingOutOfTimeError(Exception):
    """The training stopped before its time limit, after saving a checkpoint."""


class TrainingFailedError(RuntimeError):
    """The training ended without the trained weights; the message is for the user."""


class TrainingDivergedError(TrainingFailedError):
    """A number of a step, such as its loss or its gradient's norm, is infinite or NaN."""


_REMEDY = "lower lr, raise warmup_ratio or lower max_grad_norm"


def require_finite(step: int, numbers: Mapping[str, float]) -> None:
    """Raise TrainingDivergedError unless all numbers of a step are finite. The message always names
    the `loss` among them: a gradient may be infinite while the loss is not. So no training
    continues with ruined weights, and no log has `NaN` or `Infinity`, which are not JSON."""
    infinite = [name for name, value in numbers.items() if not math.isfinite(value)]
    if infinite:
        others = "".join(f", {name} {numbers[name]}" for name in infinite if name != "loss")
        raise TrainingDivergedError(
            f"the loss is {numbers['loss']} at step {step}{others}; {_REMEDY}"
        )


def skipped_update_error(step: int, loss: float) -> TrainingDivergedError:
    """The error of a step that the optimiser skipped because its gradient is not finite."""
    return TrainingDivergedError(
        f"the gradient is not finite at step {step}, where the loss is {loss}; {_REMEDY}"
    )


def attention_implementation(word: str) -> str:
    """transformers' name of an implementation of attention, by a spec's word."""
    return {"auto": "sdpa", "flash": "flash_attention_2"}.get(word, word)


def require_attention(implementation: str) -> None:
    """Raise TrainingFailedError where the software stack lacks the implementation, which is
    given by transformers' name. Jobs call it before they load a model."""
    if implementation == "flash_attention_2" and find_spec("flash_attn") is None:
        raise TrainingFailedError(
            "attention: flash takes the package flash-attn, which this software stack does "
            "not hold; put it into your own lock (`software:`), or set attention: sdpa"
        )
