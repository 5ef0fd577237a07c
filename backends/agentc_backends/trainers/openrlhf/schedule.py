"""The whole training laid out as one pass: which row stands at which place of which step.

OpenRLHF drops the last rows of an epoch, and with them goes a number that depends on the
micro-batch size and on the number of processes. Here an epoch is a permutation by (seed, epoch),
its last step is smaller, and empty rows fill it up: the same steps whatever the machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from agentc_backends.trainers.common.order import StepSampler


@dataclass(frozen=True, slots=True)
class Schedule:
    """`places[i]` is the index of a row, or None for an empty one; `global_batch` places make a
    step. `held[s]` rows of step s are not empty."""

    places: tuple[int | None, ...]
    held: tuple[int, ...]
    global_batch: int

    def step_of(self, place: int) -> int:
        """The step in which a place is trained."""
        return place // self.global_batch

    def tokens(self, of_rows: Sequence[int]) -> list[int]:
        """Tokens of the rows of each step, `of_rows` being those of the rows."""
        totals = [0] * len(self.held)
        for place, row in enumerate(self.places):
            if row is not None:
                totals[self.step_of(place)] += of_rows[row]
        return totals


def lay_out(
    lengths: Sequence[int], *, global_batch: int, epochs: float, max_steps: int | None, seed: int
) -> Schedule:
    """The schedule of rows with these lengths, in tokens. Steps: ceil(epochs * steps of an epoch),
    or `max_steps`, which may go beyond the epochs."""
    steps_per_epoch = math.ceil(len(lengths) / global_batch)
    # Rounded first: 0.1 * 30 is a bit more than 3.
    steps = max_steps or math.ceil(round(epochs * steps_per_epoch, 6))
    sampler = StepSampler(lengths, global_batch=global_batch, multiple=1, seed=seed)
    places: list[int | None] = []
    held: list[int] = []
    for epoch in count():
        sampler.set_epoch(epoch)
        rows = list(sampler)
        for start in range(0, len(rows), global_batch):
            if len(held) == steps:
                return Schedule(tuple(places), tuple(held), global_batch)
            step = rows[start : start + global_batch]
            held.append(len(step))
            places += [*step, *[None] * (global_batch - len(step))]
    raise AssertionError("epochs never end")
