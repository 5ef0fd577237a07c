"""Ends a training whose numbers are no longer finite. Shared by the reporters of all trainers, so
that none goes on with ruined weights, or writes `NaN` or `Infinity`, which are no JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping

from agentc_backends.trainers.common.endings import TrainingDivergedError

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


def not_updated(step: int, loss: float) -> TrainingDivergedError:
    """A step that the optimiser left out, for its gradient is infinite or no number."""
    return TrainingDivergedError(
        f"the gradient is not finite at step {step}, where the loss is {loss}; {_REMEDY}"
    )
