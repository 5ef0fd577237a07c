"""What XTuner keeps: float32 weights under PyTorch's DDP, or what DeepSpeed's ZeRO shares out."""

from __future__ import annotations

from agentc.backend_api.memory import ALWAYS, Held, Logits, MemoryQuestion, TrainerMemory
from agentc_backends.trainers.common.memory import (
    adapter_weights,
    gradients_at,
    processes,
    rows_at_once,
)
from agentc_backends.trainers.common.zero import stage_in, zero_held

# Without DeepSpeed mmengine writes a checkpoint into memory first; GPUs' numbers are copied before.
_LOGITS = 12
"""Bytes of a score: in float32, the shifted copy, and its logarithm."""


def sft_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of xtuner.sft."""
    rows, accumulates = rows_at_once(question, 1)
    stage = stage_in(question)
    half = question.text("dtype", "float32") == "bfloat16"
    adapters, count = adapter_weights(question), processes(question)
    flow = 2 if half else 4
    if isinstance(stage, int):
        held = zero_held(question, stage, weights=flow)
    else:
        held = _plain(count, half, accumulates)
    return TrainerMemory(
        held=held,
        processes=count,
        sequences=rows,
        length=question.integer("max_length", 1),
        flow=flow,
        residual=2 if half and isinstance(stage, int) else 4,
        logits=Logits(_LOGITS + (2 if half else 0)),
        checkpointing=question.flag("gradient_checkpointing"),
        gathered=2 if stage == 3 else 0,
        loaded=4,
        saving=0 if adapters or isinstance(stage, int) else 24 if question.gpus else 12,
        checkpoint=4 if adapters else 14 if half and isinstance(stage, int) else 12,
        adapters=adapters,
    )


def _plain(count: int, half: bool, accumulates: bool) -> tuple[Held, ...]:
    held = [
        Held(name="weights", width=4, at=ALWAYS),
        Held(name="gradients", width=4, of="trained", at=gradients_at(accumulates)),
        Held(name="Adam", width=8, of="trained"),
    ]
    if half:
        held.append(Held(name="bfloat16 copies", width=2, at=frozenset({"loss"})))
    if count > 1:
        held.append(Held(name="DDP buckets", width=4, of="trained"))
    return tuple(held)
