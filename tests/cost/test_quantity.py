"""Quantities, and how observations correct a prior."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc.cost.past import refine, weighted_median
from agentc.cost.quantities import Quantity, sum_in_step, total

quantities = st.builds(Quantity, st.floats(1e-6, 1e12), st.floats(0.01, 3))
ratios = st.floats(-5, 5)


def test_band_is_that_of_a_log_normal() -> None:
    dice = random.Random(1)
    drawn = sorted(math.exp(dice.gauss(math.log(30), 0.8)) for _ in range(20_000))
    assert Quantity(30, 0.8).low == pytest.approx(drawn[2_000], rel=0.05)
    assert Quantity(30, 0.8).high == pytest.approx(drawn[18_000], rel=0.05)


def test_between_is_read_as_the_90th_percentile() -> None:
    assert Quantity.between(10, 3).high == pytest.approx(30)
    assert Quantity.between(10, 3).low == pytest.approx(10 / 3)


@given(st.lists(quantities, min_size=1, max_size=6))
def test_errors_that_go_together_do_not_cancel(parts: list[Quantity]) -> None:
    apart, together = total(parts), sum_in_step(parts)
    assert apart.median == pytest.approx(together.median)
    assert apart.spread <= together.spread + 1e-12
    assert together.spread <= max(part.spread for part in parts) + 1e-12


@given(quantities)
def test_without_observations_the_prior_stays(prior: Quantity) -> None:
    assert refine(prior, []) == prior
    assert refine(prior, [(2.0, 0.0)]) == prior


@given(st.floats(0.3, 2), ratios)
def test_many_equal_observations_win(spread: float, ratio: float) -> None:
    found = refine(Quantity(100, spread), [(ratio, 1.0)] * 400)
    assert math.log(found.median / 100) == pytest.approx(ratio, abs=0.05 + 0.02 * abs(ratio))
    assert found.spread < spread


@given(st.floats(0.3, 2), ratios, st.floats(0.05, 1))
def test_an_observation_never_overshoots(spread: float, ratio: float, weight: float) -> None:
    moved = math.log(refine(Quantity(100, spread), [(ratio, weight)]).median / 100)
    assert min(0, ratio) - 1e-9 <= moved <= max(0, ratio) + 1e-9


def test_band_narrows_with_each_like_observation() -> None:
    spreads = [refine(Quantity(1, 1.0), [(0.4, 1.0)] * count).spread for count in range(6)]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[5] < 0.5 * spreads[0]


def test_band_stays_as_wide_as_jobs_differ() -> None:
    dice = random.Random(3)
    seen = [(dice.gauss(0.5, 0.6), 1.0) for _ in range(200)]
    found = refine(Quantity(1, 1.0), seen)
    assert found.spread == pytest.approx(0.6, rel=0.25)
    assert math.log(found.median) == pytest.approx(0.5, abs=0.15)


def test_one_outlier_does_not_carry_the_rest() -> None:
    calm = refine(Quantity(1, 1.0), [(0.2, 1.0)] * 6)
    shaken = refine(Quantity(1, 1.0), [(0.2, 1.0)] * 6 + [(6.0, 1.0)])
    assert shaken.median == pytest.approx(calm.median, rel=0.1)


def test_what_settings_fix_is_not_corrected() -> None:
    assert refine(Quantity(280, 0.0), [(1.0, 1.0)] * 9) == Quantity(280, 0.0)


@given(st.lists(st.tuples(ratios, st.floats(0.1, 5)), min_size=1, max_size=30))
def test_weighted_median_halves_the_weight(pairs: list[tuple[float, float]]) -> None:
    middle = weighted_median(pairs)
    half = sum(weight for _, weight in pairs) / 2
    assert sum(weight for value, weight in pairs if value < middle) <= half + 1e-9
    assert sum(weight for value, weight in pairs if value > middle) <= half + 1e-9
