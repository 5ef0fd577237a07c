"""How often a training saves a checkpoint where its spec does not say: alike for all trainers, and
by time, since a checkpoint may take a millisecond or ten minutes."""

from __future__ import annotations

from typing import Any

SHARE = 0.05
"""Of a training's time that its checkpoints may take when `save_every` is null."""
_BYTES_PER_S = 1e9
"""Before the first save is measured."""
_MOMENTS = 8
"""Bytes of optimiser state for each trained parameter: two moments in float32."""


def checkpoint_bytes(model: Any) -> int:
    """Bytes of a resumable checkpoint: weights that are trained, and the optimiser's state."""
    trained = [each for each in model.parameters() if each.requires_grad]
    return sum(each.numel() * (each.element_size() + _MOMENTS) for each in trained)


def first_save_seconds(model: Any) -> float:
    """How long the first save probably takes."""
    return checkpoint_bytes(model) / _BYTES_PER_S


def save_due(since_s: float, save_s: float) -> bool:
    """Whether a save that takes `save_s` is due, given the time since the last one."""
    return since_s > save_s / SHARE
