"""Verdicts: each kind of claim, and how often a verdict is wrong when the truth is known."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agentc_backends.results.verdicts.claims import judge_all
from agentc_backends.results.verdicts.rules import (
    CONTRADICTED,
    INCONCLUSIVE,
    NOT_JUDGED,
    NOT_REPRODUCED,
    REPRODUCED,
    SUPPORTED,
    VerdictRules,
)

RULES = VerdictRules(confidence=0.95, power=0.8)
RUNS = 400
MARGIN = 0.033
"""Three standard errors of a share of 0.05 over the simulated runs."""


def metrics(scores: Sequence[float | None]) -> dict[str, Any]:
    return {
        "tasks": {
            str(n): {"reward": s, "success": s, "attempts": 0 if s is None else 1}
            for n, s in enumerate(scores)
        }
    }


def claim(**changes: Any) -> dict[str, Any]:
    return {
        "name": "main",
        "what": "reward",
        "table": None,
        "stage": "here",
        "difference_from": None,
        "metric": "reward",
        "relation": "value",
        "value": 0.6,
        "tolerance": None,
        "n": 200,
        "seeds": None,
        "bounds": [0.0, 1.0],
        "percent": False,
        "gate": False,
        **changes,
    }


def verdict(said: dict[str, Any], *scores: Sequence[float | None], scale: Any = None) -> Any:
    measured = dict(zip(("here", "base"), map(metrics, scores), strict=False))
    return judge_all([said], measured, RULES, scale)[0]


def share(n: int, good: int) -> list[float]:
    return [1.0] * good + [0.0] * (n - good)


def test_the_papers_interval_is_the_one_at_its_own_n() -> None:
    few = verdict(claim(n=50), share(1000, 600))
    many = verdict(claim(n=5000), share(1000, 600))
    assert few["paper"]["high"] - few["paper"]["low"] > 0.25
    assert many["paper"]["high"] - many["paper"]["low"] < 0.03
    assert few["observed"] == many["observed"]


@pytest.mark.parametrize(
    ("said", "scores", "expected"),
    [
        # 2000 tasks at the printed number: inside the paper's own interval.
        ({}, share(2000, 1200), REPRODUCED),
        # As many tasks as the paper had: only a score very near to the printed one shows a match.
        ({}, share(200, 118), REPRODUCED),
        ({}, share(200, 115), INCONCLUSIVE),
        ({}, share(200, 70), NOT_REPRODUCED),
        ({}, share(5, 2), INCONCLUSIVE),
        ({"tolerance": 0.1}, share(200, 118), REPRODUCED),
        ({"tolerance": 0.02}, share(200, 118), INCONCLUSIVE),
        # Apart for certain, and yet within what the claim tolerates.
        ({"tolerance": 0.3}, share(2000, 800), REPRODUCED),
        ({"tolerance": 0.1}, share(2000, 800), NOT_REPRODUCED),
        # Apart for certain and perhaps outside of the band, but by no more than it tolerates.
        ({"tolerance": 0.1}, share(2000, 1010), INCONCLUSIVE),
        ({"value": 1.0}, share(200, 200), REPRODUCED),
        ({"value": 1.0}, share(50, 50), INCONCLUSIVE),
        ({"value": 0.0}, share(2000, 0), REPRODUCED),
    ],
)
def test_values(said: dict[str, Any], scores: list[float], expected: str) -> None:
    found = verdict(claim(**said), scores)
    assert found["verdict"] == expected
    assert found["difference"]["low"] <= found["difference"]["mean"] <= found["difference"]["high"]


@pytest.mark.parametrize(
    ("relation", "value", "expected"),
    [
        ("above", 0.5, SUPPORTED),
        ("above", 0.59, INCONCLUSIVE),
        ("above", 0.7, CONTRADICTED),
        ("below", 0.7, SUPPORTED),
        ("below", 0.59, INCONCLUSIVE),
        ("below", 0.5, CONTRADICTED),
    ],
)
def test_sides(relation: str, value: float, expected: str) -> None:
    said = claim(relation=relation, value=value, n=None)
    assert verdict(said, share(400, 240))["verdict"] == expected


def test_differences_are_paired_by_task() -> None:
    """A small gain on tasks of very different difficulty."""
    generator = random.Random(1)
    base = [generator.random() * 0.8 for _ in range(60)]
    here = [score + 0.05 + generator.gauss(0, 0.02) for score in base]
    said = claim(relation="above", value=0.0, n=None, difference_from="base", bounds=[-1.0, 1.0])
    found = verdict(said, here, base)
    assert found["verdict"] == SUPPORTED
    assert found["observed"]["mean"] == pytest.approx(0.05, abs=0.01)
    assert found["detectable"] < 0.02


def test_tasks_lost_on_either_side_leave_the_difference() -> None:
    said = claim(relation="above", value=0.0, n=None, difference_from="base", bounds=[-1.0, 1.0])
    found = verdict(said, [1.0, None, 0.5, 0.5], [0.0, 0.0, None, 0.5])
    assert (found["observed"]["n"], found["lost"]) == (2, 2)
    none = verdict(said, [1.0, None], [None, 1.0])
    assert none["verdict"] == NOT_JUDGED
    assert none["lost"] == 2


def test_other_tasks_are_not_judged() -> None:
    said = claim(relation="above", value=0.0, n=None, difference_from="base", bounds=[-1.0, 1.0])
    found = verdict(said, [1.0, 0.0], [1.0])
    assert found["verdict"] == NOT_JUDGED
    assert "different tasks" in found["because"]


def test_the_reason_is_told_in_the_units_of_the_paper() -> None:
    told = verdict(claim(value=0.6, percent=True, tolerance=0.05), [*share(200, 110), None])
    assert told["verdict"] == INCONCLUSIVE
    for part in (
        "difference -5.0 [",
        "tolerance 5.0",
        "with 200 tasks only differences above ",
        "are found reliably (80% power)",
        f"takes about {told['needed']} tasks",
        "1 task was lost to infrastructure errors",
    ):
        assert part in told["because"], part
    sure = verdict(claim(value=0.3, relation="below", n=None), share(200, 110))
    assert sure["because"] == "the entire 95% CI is above the claimed value"


def test_a_claim_whose_needs_do_not_hold_is_not_judged_but_shown() -> None:
    """Nor does it count among the claims against one baseline."""
    unmet = "`tasks` of `code` is `invented`, and the claim needs another value"
    found = verdict(claim(unmet=unmet), [0.6] * 200)
    assert found["verdict"] == NOT_JUDGED
    assert found["because"] == f"other tasks: {unmet}"
    assert found["unmet"] == unmet
    assert found["observed"]["mean"] == pytest.approx(0.6)
    assert verdict(claim(), [0.6] * 200)["verdict"] != NOT_JUDGED
    sides = [
        claim(name=name, relation="above", value=0.0, difference_from="base", **more)
        for name, more in (("one", {}), ("two", {"unmet": unmet}))
    ]
    measured = {"here": metrics([0.6, 0.9, 0.7] * 20), "base": metrics([0.1, 0.2, 0.1] * 20)}
    one, two = judge_all(sides, measured, RULES, None)
    assert (one["verdict"], one["family"]) == (SUPPORTED, 1)
    assert two["verdict"] == NOT_JUDGED


def test_a_reduced_scale_is_not_judged_but_shown() -> None:
    found = verdict(claim(), share(2000, 1200), scale="smoke")
    assert found["verdict"] == NOT_JUDGED
    assert "smoke" in found["because"]
    assert found["observed"]["mean"] == pytest.approx(0.6)


def shopping(generator: random.Random) -> float:
    drawn = generator.random()
    if drawn < 0.2:
        return 0.0
    return 1.0 if drawn < 0.53 else generator.choice([0.25, 1 / 3, 0.5, 2 / 3, 0.75])


MEAN = 0.33 + 0.47 * 0.5


def verdicts(
    n: int,
    printed: Callable[[random.Random], float],
    *,
    seed: int,
    **said: Any,
) -> Counter[str]:
    """How often each verdict falls: our scores are drawn from `shopping`, the paper's number from
    `printed`."""
    generator = random.Random(seed)
    shares: Counter[str] = Counter()
    for _ in range(RUNS):
        number = printed(generator)
        scores = [shopping(generator) for _ in range(n)]
        shares[verdict(claim(value=number, **said), scores)["verdict"]] += 1 / RUNS
    return shares


def of_tasks(n: int, shift: float = 0.0) -> Callable[[random.Random], float]:
    """A paper that measures the same policy (or a better one, by `shift`) on n tasks of its own."""

    def draw(generator: random.Random) -> float:
        return sum(shopping(generator) for _ in range(n)) / n + shift

    return draw


@pytest.mark.slow
def test_a_true_claim_is_seldom_refuted() -> None:
    """The same policy in paper and here: at most 5 of 100 are called not reproduced."""
    for n in (40, 200):
        found = verdicts(n, of_tasks(200), seed=n)
        assert found[NOT_REPRODUCED] == pytest.approx(0.05, abs=MARGIN)


def test_a_difference_of_the_tolerance_is_seldom_refuted() -> None:
    found = verdicts(200, of_tasks(200, 0.05), seed=1, tolerance=0.05)
    assert found[NOT_REPRODUCED] <= 0.05 + MARGIN


def test_a_score_at_the_edge_of_the_band_is_seldom_called_reproduced() -> None:
    found = verdicts(400, lambda _: MEAN + 0.05, seed=2, tolerance=0.05)
    assert found[REPRODUCED] == pytest.approx(0.05, abs=MARGIN)


def test_a_detectable_difference_is_noticed_with_the_power() -> None:
    generator = random.Random(3)
    one = verdict(claim(value=MEAN), [shopping(generator) for _ in range(200)])
    found = verdicts(200, of_tasks(200, one["detectable"]), seed=4)
    assert found[NOT_REPRODUCED] == pytest.approx(RULES.power, abs=0.05)


def test_a_match_is_shown_with_the_power_at_the_number_of_tasks_needed() -> None:
    generator = random.Random(5)
    one = verdict(claim(value=MEAN, tolerance=0.08), [shopping(generator) for _ in range(400)])
    found = verdicts(one["needed"], lambda _: MEAN, seed=6, tolerance=0.08)
    assert found[REPRODUCED] == pytest.approx(RULES.power, abs=0.06)


@pytest.mark.slow
def test_a_gain_that_is_none_is_seldom_called_one() -> None:
    generator, called = random.Random(7), Counter[str]()
    said = claim(relation="above", value=0.0, n=None, difference_from="base", bounds=[-1.0, 1.0])
    for _ in range(RUNS):
        base = [shopping(generator) for _ in range(80)]
        here = [s if generator.random() < 0.5 else shopping(generator) for s in base]
        called[verdict(said, here, base)["verdict"]] += 1 / RUNS
    assert called[SUPPORTED] <= 0.025 + 0.023
    assert called[CONTRADICTED] <= 0.025 + 0.023


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (1, 0), (2, 0), (3, 2)])
def test_what_few_moved_tasks_call_detectable_is_no_less_than_the_test_can_see(
    better: int, worse: int
) -> None:
    """Of 51 tasks, six that all got better are the fewest that any test of signs rejects."""
    said = claim(relation="above", value=0.0, n=None, difference_from="base", bounds=[-1.0, 1.0])
    found = verdict(said, share(51, better) + [0.0] * worse, [0.0] * 51 + [1.0] * worse)
    seen = math.ceil(51 * found["detectable"])
    assert verdict(said, share(51, seen), [0.0] * 51)["verdict"] == SUPPORTED
    assert found["detectable"] < 0.25


@pytest.mark.slow
def test_a_verdict_says_how_often_a_perfect_reproduction_is_called_one() -> None:
    """As often as the simulation below sees it; and the tolerance that it names is enough."""
    generator = random.Random(9)
    scores = [shopping(generator) for _ in range(200)]
    told = verdict(claim(value=MEAN), scores)
    seen = verdicts(200, of_tasks(200), seed=10)
    assert told["chance"] == pytest.approx(seen[REPRODUCED], abs=0.06)
    assert told["chance"] < 0.3
    wanted = told["tolerance_needed"]
    assert f"with `tolerance: {math.ceil(1000 * wanted) / 1000:g}` in 80%" in told["because"]
    assert "a perfect reproduction is called reproduced in" in told["because"]
    enough = verdicts(200, of_tasks(200), seed=11, tolerance=wanted)
    assert enough[REPRODUCED] == pytest.approx(RULES.power, abs=0.06)


def test_claims_against_one_baseline_are_corrected_together() -> None:
    def after(gained: int) -> dict[str, Any]:
        return metrics([1.0] * gained + [0.0] * (60 - gained))

    measured = {"base": metrics([0.0] * 60), "six": after(6), "seven": after(7)}
    said = [
        claim(name=stage, stage=stage, relation="above", value=0.0, n=None,
              difference_from="base", bounds=[-1.0, 1.0])
        for stage in ("six", "seven")
    ]  # fmt: skip
    alone = judge_all([said[0]], measured, RULES, None)
    assert alone[0]["verdict"] == SUPPORTED
    assert alone[0]["p_side"] == pytest.approx(2 / 2**6)
    third = {**said[0], "name": "again"}
    together = judge_all([*said, third], measured, RULES, None)
    assert [one["verdict"] for one in together] == [INCONCLUSIVE, SUPPORTED, INCONCLUSIVE]
    assert "Holm's correction for 3 claims" in together[0]["because"]
    assert "after adjustment for the other claims" in together[0]["because"]


def test_a_difference_between_two_protocols_is_not_judged_in_silence() -> None:
    said = claim(difference_from="base", relation="above", value=0.0, n=None)
    measured = {"here": metrics(share(40, 30)), "base": metrics(share(40, 5))}
    for stage, span in (("here", "after_last"), ("base", "line")):
        measured[stage]["protocol"] = {"attempts": 1, "action_span": span}
    [judged] = judge_all([said], measured, RULES, None)
    assert judged["verdict"] == SUPPORTED
    told = "here and base were played under two protocols (action_span after_last and line)"
    assert told in judged["because"]
    measured["here"]["protocol"] = measured["base"]["protocol"]
    [judged] = judge_all([said], measured, RULES, None)
    assert "protocols" not in judged["because"]


def test_a_verdict_on_small_gains_says_what_could_be_unseen() -> None:
    said = claim(relation="above", value=0.0, n=None, difference_from="base", bounds=[-1.0, 1.0])
    found = verdict(said, [0.1] * 40 + [0.0] * 60, [0.0] * 100)
    assert found["verdict"] == SUPPORTED
    assert "no task moved by more than 0.100" in found["because"]
    seen = verdict(said, [1.0] * 40 + [0.0] * 60, [0.0] * 100)
    assert "no task moved" not in seen["because"]
