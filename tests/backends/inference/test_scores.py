"""Scores of tasks out of metrics.json: which tasks moved, and which only rounding moves."""

from __future__ import annotations

from typing import Any

from agentc_backends.statistics.scores import describe_difference, read_scores

WHOLE = (-1.0, 1.0)


def metrics(scores: list[float]) -> dict[str, Any]:
    return {"tasks": {str(n): {"reward": s, "attempts": 2} for n, s in enumerate(scores)}}


def test_equal_means_of_other_attempts_stay_equal() -> None:
    """Rewards of 0.1 and 0.2 at two attempts, and of 0 and 0.3: their means differ by rounding."""
    attempts, others = (0.1 + 0.2) / 2, (0.0 + 0.3) / 2
    assert attempts != others
    better, same = [1.0] * 4, [0.0] * 35
    one = metrics([*better, *[attempts] * 12, *same])
    scores = read_scores([(one, metrics([*[0.0] * 4, *[others] * 12, *same]))], "reward")
    told = describe_difference(scores, scores.estimate(WHOLE), 0.95)
    assert (told["better"], told["worse"], told["equal"]) == (4, 0, 47)
    assert told["few"], "four tasks moved"
    assert told["p_value"] == 0.125


def test_gains_and_losses_of_seeds_that_cancel_out_are_no_move() -> None:
    runs = [(metrics([after] * 6), metrics([0.6] * 6)) for after in (0.9, 0.3)]
    scores = read_scores(runs, "reward")
    assert scores.over_runs() == [0.0] * 6
    told = describe_difference(scores, scores.estimate(WHOLE), 0.95)
    assert (told["mean"], told["equal"]) == (0.0, 6)


def test_what_could_have_gone_unseen_is_told_with_the_difference() -> None:
    zero, gains = metrics([0.0] * 100), metrics([0.1] * 40 + [0.0] * 60)
    scores = read_scores([(gains, zero)], "reward")
    told = describe_difference(scores, scores.estimate(WHOLE), 0.95)
    other = told["if_unseen"]
    assert other["furthest"] == 0.1
    assert other["low"] < told["low"] <= told["mean"] <= told["high"] <= other["high"]
    assert other["p_value"] > told["p_value"]
    runs = [(gains, zero), (metrics([0.1] * 38 + [0.0] * 60 + [0.1] * 2), zero)]
    pooled = read_scores(runs, "reward")
    told = describe_difference(pooled, pooled.estimate(WHOLE), 0.95)
    assert told["runs"] == 2
    assert told["if_unseen"]["low"] < told["low"]
    wide = metrics([1.0] * 20 + [0.1] * 20 + [0.0] * 60)
    scores = read_scores([(wide, zero)], "reward")
    assert describe_difference(scores, scores.estimate(WHOLE), 0.95)["if_unseen"] is None
