"""Best of k and pass@k: equal to the mean over every choice of k attempts, counted by hand."""

from __future__ import annotations

import random
from itertools import combinations
from statistics import fmean

import pytest

from agentc_backends.agents.evaluate.episode_scores import best_of, pass_at


@pytest.mark.parametrize("k", range(1, 8))
def test_both_are_the_mean_over_all_choices_of_k(k: int) -> None:
    draw = random.Random(k)
    for _ in range(20):
        rewards = [draw.choice((-0.5, 0.0, 0.25, 0.25, 1.0)) for _ in range(7)]
        successes = [reward >= 0.25 for reward in rewards]
        chosen = list(combinations(range(7), k))
        assert best_of(rewards, k) == pytest.approx(
            fmean(max(rewards[i] for i in each) for each in chosen)
        )
        assert pass_at(successes, k) == pytest.approx(
            fmean(any(successes[i] for i in each) for each in chosen)
        )


def test_one_attempt_is_the_mean_and_all_of_them_the_largest() -> None:
    rewards = [0.2, 0.9, 0.4]
    assert best_of(rewards, 1) == pytest.approx(0.5)
    assert best_of(rewards, 3) == pytest.approx(0.9)
    assert pass_at([True, False], 1) == pytest.approx(0.5)
    assert pass_at([True, False], 2) == 1


def test_fewer_attempts_than_k_say_nothing() -> None:
    """One attempt lost to a server must not make the best of ten one of nine."""
    assert best_of([1.0] * 9, 10) is None
    assert pass_at([True] * 9, 10) is None


def test_the_estimate_is_unbiased_where_the_largest_of_those_made_is_not() -> None:
    """Success with chance 0.3: five attempts have a success in 1 - 0.7**5 of cases."""
    draw = random.Random(0)
    estimates = [pass_at([draw.random() < 0.3 for _ in range(10)], 5) for _ in range(4000)]
    truth = 1 - 0.7**5
    assert fmean(e for e in estimates if e is not None) == pytest.approx(truth, abs=0.01)
