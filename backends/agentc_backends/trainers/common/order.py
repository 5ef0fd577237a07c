"""The order of training rows: a permutation of each epoch, cut into optimiser steps.

Within a step the longest rows come first, so that micro-batches hold rows of like length. That
changes no result: losses are sums over the rows (or tokens) of a step, divided once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count


class StepSampler:
    """A sampler for torch's DataLoader: yields row indices.

    `lengths` are in tokens. A step takes `global_batch` rows, the last one of an epoch what is
    left. `multiple` = micro_batch * processes: an epoch's last micro-batches are filled up with
    empty rows (index len(lengths) and on), so that several processes always take the same number
    of equally large micro-batches.
    """

    def __init__(
        self, lengths: Sequence[int], *, global_batch: int, multiple: int, seed: int
    ) -> None:
        self.lengths = lengths
        self.global_batch = global_batch
        self.empty = empty_rows(len(lengths), multiple)
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the permutation; called by the training loop at each epoch's start."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) + self.empty

    def __iter__(self) -> Iterator[int]:
        for step in _steps(len(self.lengths), self.global_batch, self.seed, self.epoch):
            yield from sorted(step, key=lambda row: (-self.lengths[row], row))
        yield from range(len(self.lengths), len(self))


def permutation(rows: int, seed: int, epoch: int) -> list[int]:
    """The order of the rows in an epoch."""
    order = list(range(rows))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order


def step_totals(numbers: Sequence[int], *, global_batch: int, seed: int) -> Iterator[int]:
    """The sum over the rows of each step, without end; `numbers` are those of the rows."""
    for epoch in count():
        for step in _steps(len(numbers), global_batch, seed, epoch):
            yield sum(numbers[row] for row in step)


def _steps(rows: int, global_batch: int, seed: int, epoch: int) -> Iterator[list[int]]:
    """The rows of each step of an epoch."""
    order = permutation(rows, seed, epoch)
    for start in range(0, rows, global_batch):
        yield order[start : start + global_batch]


def empty_rows(rows: int, multiple: int) -> int:
    """How many empty rows make `rows` a multiple of micro_batch * processes; none for 1."""
    return -rows % multiple
