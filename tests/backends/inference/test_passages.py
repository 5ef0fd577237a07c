"""First passages of curves: by hand, under noise, and of runs that never get there."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from agentc_backends.statistics.passages import (
    BoundedNumber,
    CurvePoint,
    count,
    curve_points,
    first_passage,
    over_one_run,
    over_runs,
    ratio,
)


def curve(*means: float, sd: float = 0.0, n: int = 16) -> list[CurvePoint]:
    return [CurvePoint(16.0 * (at + 1), mean, sd, n) for at, mean in enumerate(means)]


def test_three_points_in_a_row_count_together() -> None:
    found = first_passage(curve(-20, -10, -20, -18, -16, -15, -15), -17, 0.95)
    # (-20 -10 -20) / 3 = -16.7 is seen by the third point.
    assert found.at == 48
    found = first_passage(curve(-20, -19, -20, -18, -16, -15, -15), -17, 0.95)
    # So is (-18 -16 -15) / 3 = -16.3 by the sixth.
    assert (found.at, found.low, found.high) == (96, 96, 96)
    assert found.step == pytest.approx(math.log(96 / 80))
    one = first_passage(curve(-20, -19, -20, -18, -16, -15, -15), -17, 0.95, window=1)
    assert one.at == 80


def test_what_never_gets_there_is_a_bound() -> None:
    flat = first_passage(curve(*[-20.0] * 10), -17, 0.95)
    assert (flat.at, flat.low, flat.high, flat.end) == (math.inf, 160, math.inf, 160)
    assert count(flat) == BoundedNumber(160, math.inf)
    fast = first_passage(curve(-20, -10, -10, -10, -10), -17, 0.95)
    assert fast.at == 48
    assert ratio(fast, flat) == BoundedNumber(0.0, 48 / 160)
    assert ratio(flat, fast) == BoundedNumber(160 / 48, math.inf)
    assert ratio(flat, flat) == BoundedNumber(0.0, math.inf)
    # Two points are one window.
    assert first_passage(curve(-20, -10), -16, 0.95).at == 32
    with pytest.raises(ValueError, match="without points"):
        first_passage([], 0, 0.95)


def test_limits_of_one_run_are_those_of_its_games() -> None:
    """The true curve rises by one a point and is known; its noisy pictures hold the true passage
    between their limits in at least 95 of 100."""
    chance = random.Random("passages")
    true = [-20.0 + at for at in range(12)]
    passes = first_passage(curve(*true), -14, 0.95).at
    held = exact = 0
    for _ in range(400):
        points = []
        for at, mean in enumerate(true):
            games = [chance.gauss(mean, 5) for _ in range(16)]
            middle = math.fsum(games) / 16
            sd = math.sqrt(math.fsum((x - middle) ** 2 for x in games) / 15)
            points.append(CurvePoint(16.0 * (at + 1), middle, sd, 16))
        found = first_passage(points, -14, 0.95)
        assert found.low <= min(found.at, found.end) <= found.high
        held += found.low <= passes <= found.high
        exact += found.low == found.high
    assert held / 400 >= 0.95
    # Limits that say nothing would hold everything.
    assert exact / 400 < 0.1
    wide = over_one_run(found, found)
    assert wide.low < 1 < wide.high < 10
    assert wide.method == "games"


def test_runs_that_are_all_known_have_students_interval() -> None:
    found = over_runs([BoundedNumber(x, x) for x in (1.0, math.e, math.e**2)], 0.95)
    # Logarithms 0, 1, 2: mean 1, standard deviation 1, t(.975, 2) = 4.3027.
    assert found.value.low == pytest.approx(math.e)
    off = 4.302653 / math.sqrt(3)
    assert math.log(found.low) == pytest.approx(1 - off, abs=1e-5)
    assert math.log(found.high) == pytest.approx(1 + off, abs=1e-5)
    assert (found.runs, found.method) == (3, "mean")


def test_equal_runs_are_known_no_better_than_their_curves() -> None:
    """The third point is two thirds of the second on: log 1.5 squared over 12 is what is left."""
    passed = first_passage(curve(-20, -10, -10, -10), -14, 0.95)
    assert (passed.at, passed.step) == (48, pytest.approx(math.log(1.5)))
    found = over_runs([count(passed)] * 2, 0.95)
    off = 12.7062 * math.log(1.5) / math.sqrt(12) / math.sqrt(2)
    assert math.log(found.high / 48) == pytest.approx(off, abs=1e-4)


def test_bounds_leave_a_median_by_order() -> None:
    known = [BoundedNumber(x, x) for x in (0.1, 0.2, 0.3, 0.4, 0.5)]
    few = over_runs([*known[:4], BoundedNumber(8.0, math.inf)], 0.95)
    assert (few.value, few.method) == (BoundedNumber(0.3, 0.3), "median")
    assert (few.low, few.high) == (0, math.inf), "of five runs no order says anything at 95 %"
    six = over_runs([*known, BoundedNumber(8.0, math.inf)], 0.95)
    # 2 / 64 is below 5 %, 2 * 7 / 64 is not: smallest to largest.
    assert (six.low, six.high) == (0.1, math.inf)
    nine = over_runs([*known, *known[:3], BoundedNumber(8.0, math.inf)], 0.95)
    # 2 * 10 / 512 = 3.9 %: one of each end is left out.
    assert (nine.low, nine.high) == (0.1, 0.5)
    most = over_runs([BoundedNumber(0.0, 0.01)] * 4 + [BoundedNumber(0.005, 0.005)] * 2, 0.95)
    assert (most.value, most.low, most.high) == (BoundedNumber(0.0, 0.01), 0.0, 0.01)


def test_evaluations_are_the_curve_where_there_are_some() -> None:
    def row(at: int, **more: Any) -> dict[str, Any]:
        returned = {"mean": -20.0 + at, "sd": 2.0, "n": 8}
        return {"iteration": at, "trajectories": 8 * (at + 1), "steps": 99, "return": returned,
                "reply_tokens": 7 * (at + 1), **more}  # fmt: skip

    rows = [row(at) for at in range(4)]
    assert curve_points(rows, "trajectories")[3] == CurvePoint(32, -17, 2, 8)
    assert [point.played for point in curve_points(rows, "reply_tokens")] == [7, 14, 21, 28]
    rows[2] = row(2, evaluation={"mean": -3.0, "sd": 1.0, "n": 50, "success": 0.5})
    assert curve_points(rows, "trajectories") == [CurvePoint(24, -3, 1, 50)]
