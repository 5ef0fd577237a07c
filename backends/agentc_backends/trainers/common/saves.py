"""How often a training saves a checkpoint where its spec does not say: alike for all trainers."""

from __future__ import annotations

SAVES = 10
"""Checkpoints of a run when `save_every` is null."""


def steps_between_saves(steps: int, stated: int | None = None) -> int:
    """Optimiser steps from one checkpoint to the next in a run of so many; `stated` is what the
    spec asks for."""
    return stated or max(1, -(-steps // SAVES))
