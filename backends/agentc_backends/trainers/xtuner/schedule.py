"""Counts and learning rates of a run, in XTuner's iterations (one micro-batch each).

mmengine moves its schedulers at every micro-batch and reads the learning rate at the last one of an
optimiser step. The ranges below are shifted so that step k trains at the same rate as under the
other trainers: k / warm-up in the warm-up, then the decay. A range is never shorter than two
iterations, so mmengine never stays at its starting factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BY_TIME = -1
"""The interval of checkpoints that are saved by time: mmengine's own saves none."""
START_FACTOR = 1e-5
"""Share of the learning rate at which a warm-up starts: mmengine allows no zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """A run's length: optimiser steps, iterations of each process, iterations between checkpoints
    (`BY_TIME`: by time) and between log lines."""

    steps: int
    iterations: int
    save_interval: int
    log_interval: int


def length_of(settings: Mapping[str, Any], rows: int, processes: int) -> Length:
    """The length of a run over so many rows (packed sequences, where rows are packed). A last step
    that an epoch does not fill takes rows of the next pass."""
    accumulation = settings["accumulative_counts"]
    whole = settings["batch_size"] * accumulation * processes
    steps, every = settings["max_steps"], settings["save_steps"]
    if steps is None:
        steps = max(1, math.ceil(round(settings["max_epochs"] * rows / whole, 9)))
    return Length(
        steps=steps,
        iterations=steps * accumulation,
        save_interval=BY_TIME if every is None else every * accumulation,
        log_interval=settings["log_steps"] * accumulation,
    )


def schedulers(settings: Mapping[str, Any], steps: int) -> list[tuple[str, dict[str, Any]]]:
    """mmengine's schedulers as (class, arguments), in order; [] for a constant rate."""
    accumulation = settings["accumulative_counts"]
    warmup = math.ceil(steps * settings["warmup_ratio"])
    first = accumulation - 1
    turn = first + warmup * accumulation
    decay = (steps - warmup) * accumulation
    found: list[tuple[str, dict[str, Any]]] = []
    if warmup:
        rise = {"start_factor": START_FACTOR, "by_epoch": False, "begin": first, "end": turn + 1}
        found.append(("LinearLR", rise))
    span = {"by_epoch": False, "begin": turn, "end": turn + decay + 1}
    if decay and settings["scheduler"] == "cosine":
        found.append(("CosineAnnealingLR", {"eta_min": 0.0, "T_max": decay, **span}))
    elif decay and settings["scheduler"] == "linear":
        found.append(("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, **span}))
    return found
