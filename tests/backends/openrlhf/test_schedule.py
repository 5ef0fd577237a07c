"""The whole training as one pass: every row once an epoch, steps that no machine changes."""

from __future__ import annotations

from collections import Counter

import pytest

from agentc_backends.trainers.common.rows import StepSampler
from agentc_backends.trainers.openrlhf.session import schedule_rows

LENGTHS = [5, 9, 2, 7, 4, 8, 3, 6, 1, 10]


def test_an_epoch_holds_every_row_once_and_its_last_step_is_filled_up() -> None:
    schedule = schedule_rows(LENGTHS, global_batch=4, epochs=2, max_steps=None, seed=1)
    assert schedule.held == (4, 4, 2, 4, 4, 2)
    assert len(schedule.places) == 6 * 4
    assert Counter(row for row in schedule.places if row is not None) == dict.fromkeys(range(10), 2)
    assert schedule.places[10:12] == (None, None)
    assert schedule.places[:12] != schedule.places[12:]
    assert sum(schedule.tokens(LENGTHS)) == 2 * sum(LENGTHS)


def test_rows_stand_as_with_trl() -> None:
    """Losses of the two trainers can be compared step by step."""
    schedule = schedule_rows(LENGTHS, global_batch=5, epochs=3, max_steps=None, seed=7)
    sampler = StepSampler(LENGTHS, global_batch=5, multiple=1, seed=7)
    expected: list[int] = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        expected += sampler
    assert list(schedule.places) == expected


@pytest.mark.parametrize(
    ("epochs", "max_steps", "steps"),
    [(1.0, None, 3), (0.5, None, 2), (2.5, None, 8), (1.0, 1, 1), (1.0, 7, 7), (0.1, None, 1)],
)
def test_how_many_steps_there_are(epochs: float, max_steps: int | None, steps: int) -> None:
    schedule = schedule_rows(LENGTHS, global_batch=4, epochs=epochs, max_steps=max_steps, seed=0)
    assert len(schedule.held) == steps
    assert len(schedule.places) == steps * 4


def test_fewer_rows_than_a_step_takes_are_a_step() -> None:
    schedule = schedule_rows([3, 4], global_batch=8, epochs=1, max_steps=None, seed=0)
    assert schedule.held == (2,)
    assert schedule.places.count(None) == 6
