"""What DeepSpeed's ZeRO keeps, by stage: used by the trainers that run on it."""

from __future__ import annotations

from agentc.backend_api.memory import ALWAYS, TRAINING, Held, MemoryQuestion, Moment
from agentc.kinds.field import Json

STAGES: dict[str, int] = {"optimizer": 2, "full": 3}
"""Stages by what `sharding` says; without it the option `zero_stage` decides."""

_STEP: frozenset[Moment] = frozenset({"step"})
_OWN_GPU, _OWN_CPU = 8, 12
"""Float32 gradients, and the roots of the second moments; without a GPU also what they become when
they are corrected, each for all of the share at once."""


def stage_in(question: MemoryQuestion) -> Json:
    """The stage of a training whose memory is asked for; None without DeepSpeed."""
    return STAGES.get(question.text("sharding", "none")) or question.get("zero_stage")


def zero_held(question: MemoryQuestion, stage: int, weights: int) -> tuple[Held, ...]:
    """Weights of so many bytes each, float32 copies of those that are trained with both moments,
    and gradients as wide as the weights. From stage 1 on the processes share the copies, from 2
    the gradients, with 3 the weights. A step makes more of its share. With `offload` copies and
    moments lie in main memory, where the step is done."""
    own, away = _OWN_GPU if question.gpus else _OWN_CPU, question.flag("offload")
    return (
        Held(name="weights", width=weights, split=stage == 3, at=ALWAYS),
        Held(name="float32 copies", width=4, of="trained", split=True, at=ALWAYS, offloaded=away),
        Held(name="Adam", width=8, of="trained", split=True, offloaded=away),
        Held(
            name="gradients", width=weights, of="trained", split=stage >= 2, at=TRAINING - {"save"}
        ),
        Held(
            name="the step's copies", width=own, of="trained", split=True, at=_STEP, offloaded=away
        ),
    )
