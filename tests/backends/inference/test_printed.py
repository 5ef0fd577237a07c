"""Quantiles and intervals of printed numbers against published tables."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import pytest

from agentc_backends.statistics.intervals import (
    ReportedMean,
    interval_of_difference,
    t_quantile,
    wilson,
)
from agentc_backends.statistics.sample import sample

Z = NormalDist().inv_cdf(0.975)


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
    assert wilson(81 / 263, 263, Z) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    # And 0 of 20: the interval begins at nothing and still reaches up.
    assert wilson(0.0, 20, Z) == pytest.approx((0.0, 0.1611), abs=5e-5)


@dataclass(frozen=True)
class Share:
    """A share whose interval has the normal quantile, as Newcombe's do."""

    good: int
    n: int

    @property
    def mean(self) -> float:
        return self.good / self.n

    def interval(self, confidence: float) -> tuple[float, float]:
        return wilson(self.mean, self.n, NormalDist().inv_cdf(0.5 + confidence / 2))


def test_interval_of_a_difference_of_a_known_case() -> None:
    # Newcombe 1998 (differences), table II, case (a): 56/70 - 48/80, method 10.
    found = interval_of_difference(Share(56, 70), Share(48, 80), 0.95)
    assert found == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_a_printed_share_is_known_to_what_our_own_scores_would_be() -> None:
    """The same mean and n, from tasks or from a paper: one interval."""
    ours = sample([1.0] * 15 + [0.0] * 36, (0.0, 1.0))
    printed = ReportedMean(mean=15 / 51, n=51, bounds=(0.0, 1.0))
    assert printed.interval(0.95) == pytest.approx(ours.interval(0.95), abs=1e-9)
