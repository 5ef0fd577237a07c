"""The order of the rows, and lengths and learning rates of a run, in XTuner's iterations (one
micro-batch each).

mmengine advances its schedulers at every micro-batch and reads the learning rate at the last one of
an optimiser step. The ranges below are shifted so that step k trains at the same rate as in the
other trainers: k / warm-up in the warm-up, then the decay. A range is never shorter than two
iterations, for else mmengine would stay at its starting factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from agentc_backends.data.chat.formats import RowsError
from agentc_backends.data.chat.rows import Side
from agentc_backends.trainers.common.rows import permutation
from agentc_backends.trainers.xtuner.settings import XtunerSettings

BY_TIME = -1
"""The interval of checkpoints that are saved by time, at which mmengine's own hook saves none."""
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


def length_of(settings: XtunerSettings, rows: int, processes: int) -> Length:
    """The length of a run over `rows` rows, or packed sequences. A last step that an epoch does not
    fill takes rows of the next epoch."""
    accumulation = settings.accumulative_counts
    whole = settings.batch_size * accumulation * processes
    steps, every = settings.max_steps, settings.save_steps
    if steps is None:
        steps = max(1, math.ceil(round(settings.max_epochs * rows / whole, 9)))
    return Length(
        steps=steps,
        iterations=steps * accumulation,
        save_interval=BY_TIME if every is None else every * accumulation,
        log_interval=settings.log_steps * accumulation,
    )


def schedulers(settings: XtunerSettings, steps: int) -> list[tuple[str, dict[str, Any]]]:
    """mmengine's schedulers as (class, arguments), in order; [] for a constant rate."""
    accumulation = settings.accumulative_counts
    warmup = math.ceil(steps * settings.warmup_ratio)
    first = accumulation - 1
    turn = first + warmup * accumulation
    decay = (steps - warmup) * accumulation
    found: list[tuple[str, dict[str, Any]]] = []
    if warmup:
        rise = {"start_factor": START_FACTOR, "by_epoch": False, "begin": first, "end": turn + 1}
        found.append(("LinearLR", rise))
    span = {"by_epoch": False, "begin": turn, "end": turn + decay + 1}
    if decay and settings.scheduler == "cosine":
        found.append(("CosineAnnealingLR", {"eta_min": 0.0, "T_max": decay, **span}))
    elif decay and settings.scheduler == "linear":
        found.append(("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, **span}))
    return found


class RowOrder:
    """An endless sampler for torch's DataLoader: the permutations of all trainers, epoch after
    epoch, dealt to the processes in whole micro-batches.

    The rows of all epochs form one stream; `batch_size` rows in a row are a micro-batch, and
    process r of n takes the micro-batches r, r + n, ... Step s of a run thus holds the rows from
    s * global_batch on, for any number of processes. mmengine's own sampler deals single rows, so
    that the result would depend on the number of processes.
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        seed: int,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        if rank is None or world_size is None:
            from mmengine.dist import get_dist_info

            rank, world_size = get_dist_info()
        self.rows = len(dataset)
        self.batch_size = batch_size
        self.seed = seed
        self.rank = rank
        self.world_size = world_size

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[int]:
        stream = self._stream()
        for batch in count():
            rows = list(islice(stream, self.batch_size))
            if batch % self.world_size == self.rank:
                yield from rows

    def _stream(self) -> Iterator[int]:
        for epoch in count():
            yield from permutation(self.rows, self.seed, epoch)


_CHUNK = 1000
"""Rows that the data set library passes to XTuner's packer at a time."""


def packed_sequences(sides: Sequence[Side], max_length: int) -> list[list[bool]]:
    """The trained-token masks of the sequences that XTuner's packer will make, in its order. The
    rest of a chunk begins the next one; the last rest is not trained.

    They are counted before the training, whose length depends on them. Raises RowsError for a
    sequence without a trained token, whose loss would not be a number.
    """
    sequences: list[list[bool]] = []
    rest: list[bool] = []
    for start in range(0, len(sides), _CHUNK):
        for side in sides[start : start + _CHUNK]:
            rest += side.trained
        whole = len(rest) // max_length
        if whole == 0:
            sequences.append(rest)
            rest = []
            continue
        sequences += [rest[i * max_length : (i + 1) * max_length] for i in range(whole)]
        rest = rest[whole * max_length :]
    empty = sum(not any(sequence[1:]) for sequence in sequences)
    if empty:
        raise RowsError(
            f"{empty} of {len(sequences)} packed sequences of {max_length} tokens hold no trained "
            "token; raise max_length, or leave packing out"
        )
    return sequences


DIVERGED = "diverged.txt"
"""In the job's work folder: the message of a training whose loss is no longer a number."""


STOPPED = "stopped"
"""Also there: the mark of a training that saved a checkpoint and stopped before the time limit."""
