"""What OpenRLHF's trainers keep: bfloat16 weights, and by DeepSpeed's ZeRO float32 copies of them
with both moments, shared out by stage."""

from __future__ import annotations

from agentc.backend_api.memory import ALWAYS, Held, Logits, MemoryQuestion, TrainerMemory
from agentc_backends.trainers.common.memory import adapter_weights, processes, rows_at_once
from agentc_backends.trainers.common.zero import stage_in, zero_held

_LOGITS = 12
"""Bytes of a score: in float32, with its gradient and that of the piece it was summed in."""


def sft_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of openrlhf.sft."""
    return _memory(question, pairs=False)


def dpo_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of openrlhf.dpo: both sides of a pair at once, and a reference all the time."""
    return _memory(question, pairs=True)


def _memory(question: MemoryQuestion, *, pairs: bool) -> TrainerMemory:
    rows, _ = rows_at_once(question, None)
    given, adapters = stage_in(question), adapter_weights(question)
    stage = given if isinstance(given, int) else 2
    held = [*zero_held(question, stage, weights=2)]
    if pairs:
        split = stage == 3
        held.append(Held(name="reference", width=2, of="reference", split=split, at=ALWAYS))
    return TrainerMemory(
        held=tuple(held),
        processes=processes(question),
        sequences=2 * rows if pairs else rows,
        length=question.integer("max_length", 1),
        flow=2,
        residual=2,
        logits=Logits(_LOGITS),
        checkpointing=question.flag("gradient_checkpointing"),
        gathered=2 if stage == 3 else 0,
        loaded=4 if pairs else 2,
        checkpoint=2 if adapters else 14,
        adapters=adapters,
    )
