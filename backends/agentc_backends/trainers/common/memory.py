"""What trainers answer alike when they are asked for their memory: rows at once, accumulation,
adapters. Read where backends are declared; imports nothing heavy.
"""

from __future__ import annotations

from agentc.backend_api.memory import TRAINING, MemoryQuestion, Moment


def rows_at_once(question: MemoryQuestion, default: int | None) -> tuple[int, bool]:
    """(rows that a process takes at once, whether a step has several such micro-batches);
    `default` is the size where the spec is silent, None for all rows of a process."""
    whole = max(1, question.integer("global_batch", 1) // processes(question))
    size = question.integer("micro_batch", default or whole)
    return min(size, whole), size < whole


def processes(question: MemoryQuestion) -> int:
    """How many train together."""
    return max(1, question.integer("processes", 1))


def gradients_at(accumulates: bool) -> frozenset[Moment]:
    """When gradients are there: those of the micro-batches before lie there while the next one is
    computed; after a step they are gone."""
    return TRAINING - {"save"} if accumulates else TRAINING - {"loss", "save"}


def adapter_weights(question: MemoryQuestion) -> int:
    """Weights of the low-rank adapters, 0 where all weights are trained."""
    if question.get("lora") is None:
        return 0
    targets = question.get("lora.targets")
    names = tuple(map(str, targets)) if isinstance(targets, (list, tuple)) else ()
    # Adapters on modules that are not known here are counted as if on all.
    count = question.model.adapters(question.integer("lora.rank", 8), names)
    return count or question.model.adapters(question.integer("lora.rank", 8))
