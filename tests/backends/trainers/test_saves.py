"""How often trainings save: a tenth of the run under every trainer, in whole steps."""

from __future__ import annotations

import math

import pytest

from agentc_backends.trainers.common.saves import SAVES, steps_between_saves


@pytest.mark.parametrize(
    ("steps", "stated", "expected"),
    [(1, None, 1), (9, None, 1), (10, None, 1), (11, None, 2), (70, None, 7), (70, 3, 3),
     (3, 100, 100), (10**17, None, 10**16)],
)  # fmt: skip
def test_steps_between_saves(steps: int, stated: int | None, expected: int) -> None:
    assert steps_between_saves(steps, stated) == expected


def test_the_share_that_transformers_is_given_makes_the_same_steps() -> None:
    """It multiplies a share out as a float, `math.ceil(steps * share)`."""
    for steps in range(1, 50_000):
        assert math.ceil(steps * (1 / SAVES)) == steps_between_saves(steps)
