"""Several runs on the same tasks: components of variance by hand, coverage by simulation."""

from __future__ import annotations

import random
from statistics import fmean
from typing import Any

import pytest

from agentc_backends.results.verdicts.claims import judge_all
from agentc_backends.results.verdicts.rules import (
    INCONCLUSIVE,
    NOT_JUDGED,
    SUPPORTED,
    VerdictRules,
)
from agentc_backends.statistics.sample import sample
from agentc_backends.statistics.scores import Pooled, pool

RUNS = 500
WIDE = (-9.0, 9.0)


def pooled(table: list[list[float]]) -> Pooled:
    means = [fmean(column) for column in zip(*table, strict=True)]
    low, high = min(map(min, table)), max(map(max, table))
    return pool(table, sample(means, WIDE, seen=(low, high)))


def judge(said: dict[str, Any], measured: dict[str, Any]) -> Any:
    return judge_all([said], measured, VerdictRules(confidence=0.95, power=0.8), None)[0]


def test_components_of_a_table_by_hand() -> None:
    # Means of runs 2, 4, 6, of tasks 3, 4, 5, of all 4: mean squares 12, 3 and, of the rest, 0.
    found = pooled([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [5.0, 6.0, 7.0]])
    assert (found.mean, found.rest) == (4.0, 0.0)
    assert found.between_runs == pytest.approx(4.0)
    assert found.between_tasks == pytest.approx(1.0)
    assert found.standard_error() ** 2 == pytest.approx(4 / 3 + 1 / 3)
    # Satterthwaite: (12 + 3)^2 / (12^2 / 2 + 3^2 / 2) = 2.94, rounded down.
    assert found.freedom == 2


def test_one_run_or_one_task_says_nothing_of_how_they_vary() -> None:
    for table in ([[0.1, 0.2]], [[0.1], [0.2]]):
        with pytest.raises(ValueError, match="cannot be pooled"):
            pooled(table)


@pytest.mark.parametrize("runs", [3, 6])
@pytest.mark.parametrize(
    ("of_runs", "of_tasks", "rest"),
    [(0.08, 0.3, 0.25), (0.3, 0.1, 0.1), (0.0, 0.3, 0.25)],
    ids=["both", "runs", "tasks"],
)
def test_intervals_cover_the_mean_over_other_runs_and_tasks(
    of_runs: float, of_tasks: float, rest: float, runs: int
) -> None:
    generator, covered = random.Random(runs), 0
    for _ in range(RUNS):
        tasks = [generator.gauss(0, of_tasks) for _ in range(40)]
        shifts = [generator.gauss(0, of_runs) for _ in range(runs)]
        table = [[shift + task + generator.gauss(0, rest) for task in tasks] for shift in shifts]
        covered += pooled(table).p_value(0.0) >= 0.05
    assert 0.92 <= covered / RUNS <= 0.99


def metrics(scores: list[float | None]) -> dict[str, Any]:
    return {
        "tasks": {
            str(n): {"reward": s, "attempts": 0 if s is None else 1} for n, s in enumerate(scores)
        }
    }


def claim(runs: list[list[str | None]], **changes: Any) -> dict[str, Any]:
    return {
        "name": "gain",
        "what": "gain",
        "table": None,
        "stage": "after",
        "difference_from": "before",
        "metric": "reward",
        "relation": "above",
        "value": 0.0,
        "tolerance": None,
        "n": None,
        "seeds": None,
        "bounds": [-1.0, 1.0],
        "percent": False,
        "gate": False,
        "runs": runs,
        **changes,
    }


def test_a_gain_in_one_seed_is_no_gain() -> None:
    """Each of 200 tasks gains in one run of three and loses in another: many tasks cannot make up
    for few runs."""
    zero = metrics([0.0] * 200)
    generator = random.Random(1)

    def gains(mean: float) -> dict[str, Any]:
        return metrics([mean + generator.gauss(0, 0.05) for _ in range(200)])

    measured = {"b": zero, "x": gains(0.3), "y": gains(0.02), "z": gains(-0.05)}
    apart = judge(claim([["x", "b"], ["y", "b"], ["z", "b"]]), measured)
    assert apart["verdict"] == INCONCLUSIVE
    assert apart["observed"]["runs"] == 3
    measured |= {"y": gains(0.28), "z": gains(0.33)}
    agreed = judge(claim([["x", "b"], ["y", "b"], ["z", "b"]]), measured)
    assert agreed["verdict"] == SUPPORTED
    alone = judge(claim([["x", "b"]]), measured)
    assert alone["observed"]["high"] - alone["observed"]["low"] < 0.025


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_a_detectable_difference_of_few_runs_is_one_that_they_could_show(runs: int) -> None:
    """It is further off than the interval reaches, which two or three runs make long."""
    generator = random.Random(3)
    zero = metrics([0.0] * 60)
    shifts = [0.2 * n / runs for n in range(runs)]
    measured = {
        f"x{n}": metrics([shift + generator.gauss(0, 0.05) for _ in range(60)])
        for n, shift in enumerate(shifts)
    }
    found = judge(claim([[name, "b"] for name in measured]), {**measured, "b": zero})
    assert found["verdict"] == INCONCLUSIVE
    seen = found["observed"]
    assert found["detectable"] > seen["mean"] - max(seen["low"], -0.9)


def test_the_papers_runs_count() -> None:
    """A paper's mean of three runs is known better than that of one, by how much ours vary."""
    generator = random.Random(2)
    runs = [[0.1 * n + generator.random() * 0.5 for _ in range(80)] for n in range(3)]
    measured = {name: metrics(list(row)) for name, row in zip("xyz", runs, strict=True)}
    widths = []
    for seeds in (1, 3):
        said = claim([[name, None] for name in "xyz"], relation="value", value=0.35, n=80,
                     seeds=seeds, difference_from=None, bounds=[0.0, 1.0])  # fmt: skip
        found = judge(said, measured)
        widths.append(found["paper"]["high"] - found["paper"]["low"])
    assert widths[1] < 0.75 * widths[0]


def test_a_task_lost_in_one_run_is_lost_to_all() -> None:
    measured = {"x": metrics([0.5, None, 0.7]), "y": metrics([0.4, 0.6, None])}
    found = judge(claim([["x", None], ["y", None]]), measured)
    assert (found["lost"], found["observed"]["n"]) == (2, 1)
    measured["y"] = metrics([0.4, 0.6])
    other = judge(claim([["x", None], ["y", None]]), measured)
    assert other["verdict"] == NOT_JUDGED


def test_runs_that_agree_in_everything_are_no_proof_of_certainty() -> None:
    measured = {name: metrics([1.0] * 30) for name in "xyz"}
    said = claim([[name, None] for name in "xyz"], difference_from=None, value=0.95,
                 bounds=[0.0, 1.0])  # fmt: skip
    assert judge(said, measured)["verdict"] == INCONCLUSIVE
