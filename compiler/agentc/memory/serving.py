"""serving_need: what a server of a model needs, by what its backend keeps."""

from __future__ import annotations

from agentc.backend_api.memory import Architecture, ServerMemory
from agentc.memory.activations import passing_activations
from agentc.memory.need import BASE_BYTES, MemoryNeed, MemoryPart


def serving_need(memory: ServerMemory, model: Architecture, *, gpus: int) -> MemoryNeed:
    """The need of one server: of each of its devices, or without GPUs of its process."""
    weights = memory.weights * model.parameters / memory.devices
    each = 2 * model.layers * model.keys * memory.cache / memory.devices
    cache = memory.fixed_cache or memory.window * each
    passing = passing_activations(model, memory.flow, memory.flow, memory.batch) / memory.devices
    logits = memory.logit * memory.replies * model.vocabulary
    parts = (
        MemoryPart("weights", max(0.0, weights - memory.offloaded)),
        MemoryPart("keys and values", cache),
        MemoryPart("activations", passing),
        MemoryPart("logits", logits),
    )
    size = sum(part.size for part in parts)
    base = memory.workers * BASE_BYTES
    host = base + (memory.offloaded * memory.devices + _shard(memory, model) if gpus else size)
    # Each of its processes runs all the time: one that waits for a core makes a GPU wait.
    cores = memory.workers if gpus else 0
    return MemoryNeed(parts=parts, host=host, share=memory.share if gpus else 1.0, cores=cores)


_SHARD = 5e9
"""Hugging Face's files of weights are no larger; one at a time goes through main memory."""


def _shard(memory: ServerMemory, model: Architecture) -> float:
    return min(_SHARD, memory.weights * model.parameters)
