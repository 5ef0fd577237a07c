"""Win rates: the share of tasks on which an evaluation has a higher reward than the one that it is
held against; a tie counts a half (SWEET-RL, arXiv 2503.15478, table 2, names no rule for ties).

Of several attempts at a task the mean reward is compared. Neighbours: `scores.py` pairs the tasks,
`sample.py` says what a share is known to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentc_backends.statistics.described import described
from agentc_backends.statistics.scores import Estimate, Run, Scores, read_scores

WIN_RATE = "win_rate"
BOUNDS = (0.0, 1.0)


def read_wins(runs: Sequence[Run]) -> Scores:
    """1, 1/2 or 0 for each task that both evaluations of every run have a reward of."""
    differences = read_scores(runs, "reward")
    table = tuple(tuple(_won(value) for value in row) for row in differences.table)
    found = [value for row in table for value in row] or [0.0]
    return Scores(table, False, differences.lost, (min(found), max(found)))


def described_wins(scores: Scores, one: Estimate, confidence: float) -> dict[str, Any]:
    """The rate with its limits, and the counts behind it; of several runs, over all of them."""
    outcomes = [value for row in scores.table for value in row]
    counts = {"wins": outcomes.count(1.0), "ties": outcomes.count(0.5)}
    return {**described(one, confidence), **counts, "losses": outcomes.count(0.0)}


def _won(difference: float) -> float:
    return 0.5 if difference == 0 else float(difference > 0)
