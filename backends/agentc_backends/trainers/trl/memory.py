"""What TRL's trainers keep: float32 weights, gradients and moments, shared out as `sharding` says.

TRL 1.16 computes the scores over the vocabulary in tiles, and never has all of them.
"""

from __future__ import annotations

from agentc.backend_api.memory import (
    ALWAYS,
    Held,
    Logits,
    MemoryQuestion,
    Moment,
    TrainerMemory,
)
from agentc_backends.trainers.common.memory import (
    adapter_weights,
    gradients_at,
    processes,
    rows_at_once,
)

_TILE = (4096, 32768)
_TILE_WIDTH_GPU, _TILE_WIDTH_CPU = 2, 33
"""On a GPU one kernel does a tile in place; elsewhere torch holds eight and a quarter for one: the
tile, what it is scaled to (twice), its logarithm, its exponential, the gradient, a sum of it before
and after it is added, and a mask of a byte for each number (`_backward_tile` of TRL)."""


def sft_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of trl.sft."""
    return _memory(question, pairs=False)


def dpo_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of trl.dpo: both sides of a pair at once, and until its log-probabilities are made a
    reference that is another model than the policy; the policy's own start is the policy."""
    return _memory(question, pairs=True)


def critic_memory(question: MemoryQuestion) -> TrainerMemory:
    """Of trl.critic: as trl.dpo, but that a head is compared with no reference."""
    head = question.text("parameterisation", "log_ratio") == "value_head"
    return _memory(question, pairs=True, compared=not head)


def _memory(question: MemoryQuestion, *, pairs: bool, compared: bool = True) -> TrainerMemory:
    rows, accumulates = rows_at_once(question, None)
    count, adapters = processes(question), adapter_weights(question)
    half = question.text("dtype", "float32") == "bfloat16"
    sharding = question.text("sharding", "none")
    second = pairs and compared and question.reference
    flow = 2 if half else 4
    held = [
        *_model(sharding, half, question.flag("offload")),
        *_optimiser(sharding, gradients_at(accumulates), question.flag("offload")),
    ]
    if count > 1 and sharding == "none":
        held.append(Held(name="DDP buckets", width=4, of="trained"))
    if second:
        held.append(
            Held(
                name="reference",
                width=4,
                of="reference",
                split=sharding != "none",
                at=frozenset({"reference"}),
            )
        )
    return TrainerMemory(
        held=tuple(held),
        processes=count,
        sequences=2 * rows if pairs else rows,
        length=question.integer("max_length", 1),
        flow=flow,
        residual=4,
        logits=Logits(_TILE_WIDTH_GPU * flow / 2 if question.gpus else _TILE_WIDTH_CPU, _TILE),
        checkpointing=question.flag("gradient_checkpointing"),
        gathered=2 if sharding == "full" else 0,
        # A unit of its own, gathered in float32; `optimizer` has what of it flows already.
        ends={"full": 4, "optimizer": 4 - flow}.get(sharding, 0),
        loaded=8 if second else 4,
        loads_once=sharding != "none",
        checkpoint=4 if adapters else 12,
        adapters=adapters,
    )


def _model(sharding: str, half: bool, offload: bool) -> list[Held]:
    weights = Held(
        name="weights",
        width=4,
        split=sharding != "none",
        at=ALWAYS,
        offloaded=offload and sharding != "none",
    )
    passes: frozenset[Moment] = frozenset({"loss", "backward"})
    if sharding == "optimizer":
        whole = Held(name="gathered weights", width=2 if half else 4, at=passes)
        return [weights, whole]
    if sharding == "none" and half:
        # Autocast keeps its bfloat16 copies until the forward pass is over.
        return [weights, Held(name="bfloat16 copies", width=2, at=frozenset({"loss"}))]
    return [weights]


def _optimiser(sharding: str, gradients: frozenset[Moment], offload: bool) -> list[Held]:
    split = sharding != "none"
    away = offload and split
    return [
        Held(name="gradients", width=4, of="trained", split=split, at=gradients, offloaded=away),
        Held(name="Adam", width=8, of="trained", split=split, offloaded=away),
    ]
