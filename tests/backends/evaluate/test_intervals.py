"""Intervals: known values, coverage on simulated data, and determinism."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from agentc_backends.evaluate_agent.intervals import IntervalRules, interval_of_mean

BOOTSTRAP = IntervalRules("bootstrap", 0.95, 1000)
NORMAL = IntervalRules("normal", 0.95, 0)


def test_the_normal_interval_is_the_textbook_one() -> None:
    interval = interval_of_mean([1.0, 2.0, 3.0, 4.0, 5.0], NORMAL)
    # sd = sqrt(2.5), standard error 0.70711, z = 1.95996
    assert interval.mean == 3.0
    assert interval.low == pytest.approx(1.61410, abs=1e-5)
    assert interval.high == pytest.approx(4.38590, abs=1e-5)


def test_the_bootstrap_agrees_with_the_normal_approximation_on_many_values() -> None:
    values = _gauss(400)
    one, other = interval_of_mean(values, BOOTSTRAP), interval_of_mean(values, NORMAL)
    assert one.low == pytest.approx(other.low, abs=0.02)
    assert one.high == pytest.approx(other.high, abs=0.02)


@pytest.mark.parametrize("rules", [BOOTSTRAP, NORMAL])
def test_intervals_cover_the_true_mean_about_as_often_as_they_say(rules: IntervalRules) -> None:
    generator = random.Random(7)
    rules = replace(rules, resamples=300, confidence=0.9)
    covered = 0
    for _ in range(200):
        interval = interval_of_mean([float(generator.random() < 0.4) for _ in range(60)], rules)
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= 0.4 <= interval.high
    assert 165 <= covered <= 194


def test_equal_scores_give_equal_intervals() -> None:
    values = _gauss(30)
    assert interval_of_mean(values, BOOTSTRAP) == interval_of_mean(values, BOOTSTRAP)


def test_more_confidence_is_wider() -> None:
    values = _gauss(50)
    wide = interval_of_mean(values, replace(BOOTSTRAP, confidence=0.99))
    narrow = interval_of_mean(values, replace(BOOTSTRAP, confidence=0.5))
    assert wide.low < narrow.low <= narrow.high < wide.high  # type: ignore[operator]


def test_the_mean_never_lies_outside_even_at_low_confidence() -> None:
    interval = interval_of_mean([0.0] * 20 + [50.0], replace(BOOTSTRAP, confidence=0.01))
    assert interval.low <= interval.mean <= interval.high  # type: ignore[operator]


def test_one_value_and_none() -> None:
    assert interval_of_mean([0.5], NORMAL).low == 0.5
    assert interval_of_mean([], BOOTSTRAP).mean is None


def _gauss(count: int) -> list[float]:
    generator = random.Random(3)
    return [generator.gauss(0, 1) for _ in range(count)]
