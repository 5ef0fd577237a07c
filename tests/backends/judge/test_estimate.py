"""Quantiles against published tables, and the coverage of intervals by simulation."""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import NormalDist

import pytest

from agentc_backends.judge_claims.estimate import (
    Estimate,
    estimate,
    interval_of_difference,
    wilson,
)
from agentc_backends.judge_claims.student import t_quantile

RUNS = 1500
MARGIN = 0.018
"""Three standard errors of a share of 0.95 over the simulated runs."""


@pytest.mark.parametrize(
    ("share", "freedom", "value"),
    [
        # Fisher and Yates, table III.
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.95, 5, 2.015),
        (0.995, 10, 3.169),
        (0.975, 30, 2.042),
        (0.9995, 120, 3.373),
        (0.025, 30, -2.042),
        (0.5, 7, 0.0),
    ],
)
def test_quantiles_are_those_of_the_tables(share: float, freedom: int, value: float) -> None:
    assert t_quantile(share, freedom) == pytest.approx(value, abs=6e-4)


def test_quantiles_join_where_the_formula_changes_and_end_at_the_normal() -> None:
    exact, expanded = t_quantile(0.975, 999), t_quantile(0.975, 1000)
    assert 0 < exact - expanded < 1e-5
    assert t_quantile(0.975, 10**7) == pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-6)
    with pytest.raises(ValueError, match="0 degrees of freedom"):
        t_quantile(0.9, 0)


def test_wilson_interval_of_a_known_case() -> None:
    # Newcombe 1998 (one proportion), table I: 81 of 263, method 3.
    assert wilson(81 / 263, 263, 0.95) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    # And 0 of 20: the interval begins at nothing and still reaches up.
    assert wilson(0.0, 20, 0.95) == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_interval_of_a_difference_of_a_known_case() -> None:
    # Newcombe 1998 (differences), table II, case (a): 56/70 - 48/80, method 10.
    one = Estimate(mean=56 / 70, n=70, bounds=(0.0, 1.0))
    other = Estimate(mean=48 / 80, n=80, bounds=(0.0, 1.0))
    assert interval_of_difference(one, other, 0.95) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_equal_scores_are_no_proof_of_certainty() -> None:
    low, high = estimate([0.5] * 30, (0.0, 1.0)).interval(0.95)
    assert low < 0.4
    assert high > 0.6
    assert estimate([1.0] * 30, (0.0, 1.0)).interval(0.95)[0] < 0.9


def test_no_scores_no_estimate() -> None:
    with pytest.raises(ValueError, match="no task"):
        estimate([], (0.0, 1.0))


def bernoulli(share: float) -> Callable[[random.Random], float]:
    return lambda generator: float(generator.random() < share)


def shopping(generator: random.Random) -> float:
    """Rewards as WebShop gives them: a fifth nothing, a third all, the rest in between."""
    drawn = generator.random()
    if drawn < 0.2:
        return 0.0
    return 1.0 if drawn < 0.53 else generator.choice([0.25, 1 / 3, 0.5, 2 / 3, 0.75])


SHOPPING_MEAN = 0.33 + 0.47 * 0.5


@pytest.mark.parametrize("n", [15, 60, 200])
@pytest.mark.parametrize(
    ("draw", "mean"),
    [(bernoulli(0.5), 0.5), (bernoulli(0.9), 0.9), (shopping, SHOPPING_MEAN)],
    ids=["half", "nine_tenths", "shopping"],
)
def test_intervals_cover_as_often_as_they_say(
    draw: Callable[[random.Random], float], mean: float, n: int
) -> None:
    generator = random.Random(n)
    covered = 0
    for _ in range(RUNS):
        scores = [draw(generator) for _ in range(n)]
        low, high = estimate(scores, (0.0, 1.0)).interval(0.95)
        covered += low <= mean <= high
    assert covered / RUNS == pytest.approx(0.95, abs=MARGIN + 0.012)


def test_paired_differences_of_success_are_covered() -> None:
    """Two policies that mostly succeed on the same tasks."""
    generator, covered, n = random.Random(5), 0, 100
    for _ in range(RUNS):
        differences = []
        for _ in range(n):
            first = generator.random()
            second = first if generator.random() < 0.7 else generator.random()
            differences.append(float(first < 0.7) - float(second < 0.6))
        low, high = estimate(differences, (-1.0, 1.0)).interval(0.95)
        covered += low <= 0.1 <= high
    assert covered / RUNS == pytest.approx(0.95, abs=MARGIN)
