"""What passes through a model and is kept: activations for the backward pass, scores over the
vocabulary. Neighbours: `training.py`, `serving.py`."""

from __future__ import annotations

from agentc.backend_api.memory import Architecture, Logits, TrainerMemory

_NORM = 4
"""Norms are computed in float32, whatever flows."""
_LOG_SUM = 4
"""Bytes for each head and token that attention keeps for its backward pass."""


def layer_bytes(model: Architecture, flow: int, residual: int) -> int:
    """Kept of one token in one layer, for the backward pass.

    Two norms keep their input in float32, the normalised numbers and the result; attention its
    queries, keys and values (each head its own copy) and its result; the gated MLP both products,
    the activation, and what is projected down.
    """
    norms = 2 * model.hidden * (_NORM + residual + flow)
    attention = flow * 4 * model.queries + _LOG_SUM * model.heads
    return norms + attention + 4 * flow * model.intermediate


def backward_bytes(model: Architecture, flow: int, residual: int) -> int:
    """Gradients of one token on the way through a layer, at their widest."""
    return 3 * flow * model.intermediate + 2 * residual * model.hidden


def logit_bytes(model: Architecture, logits: Logits, tokens: int) -> float:
    """Scores over the vocabulary for so many tokens, with what their loss keeps."""
    if logits.tile is None:
        return logits.width * tokens * model.vocabulary
    rows, columns = logits.tile
    tile = min(tokens, rows) * min(model.vocabulary, columns)
    return logits.width * tile + 4 * model.table


def kept_activations(model: Architecture, memory: TrainerMemory) -> float:
    """Of all tokens that a process takes at once, when the loss is there."""
    tokens = memory.sequences * memory.length
    layer = layer_bytes(model, memory.flow, memory.residual)
    ends = model.hidden * (memory.residual + _NORM + memory.residual + memory.flow)
    if memory.checkpointing:
        return tokens * (ends + model.layers * memory.residual * model.hidden + layer)
    return tokens * (ends + model.layers * layer)


def passing_activations(model: Architecture, flow: int, residual: int, tokens: int) -> float:
    """Of so many tokens, where nothing is kept for a backward pass: the widest place of a layer."""
    inside = max(3 * model.intermediate, 2 * model.queries + 2 * model.keys)
    return tokens * (flow * (inside + model.hidden) + 2 * residual * model.hidden)
