"""Checkpoints of a training in its estimate: none for a short one, a twentieth at most by time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agentc.cost.seconds import _saving

BILLION = 1e9


def seconds(weights: float, trained_s: float, *, steps: float = 100, **settings: Any) -> float:
    subject: Any = SimpleNamespace(config={}, setting=settings.get)
    work: Any = SimpleNamespace(steps=SimpleNamespace(median=steps))
    return _saving(subject, work, weights, trained_s).median


@pytest.mark.parametrize(
    ("weights", "trained_s", "found"),
    [
        (7 * BILLION, 15 * 60, 0),  # 84 s of a save are more than a twentieth
        (7 * BILLION, 10 * 3600, 21 * 84),
        (1e6, 60, 3.0),
    ],
)
def test_saves_by_time(weights: float, trained_s: float, found: float) -> None:
    assert seconds(weights, trained_s) == pytest.approx(found, rel=0.01)
    assert seconds(weights, trained_s) <= 0.05 * trained_s


def test_saves_that_a_spec_names() -> None:
    assert seconds(7 * BILLION, 900, steps=100, save_every=10) == pytest.approx(9 * 84)
    assert seconds(7 * BILLION, 900, steps=100, save_every=10, lora={"rank": 8}) == 0
