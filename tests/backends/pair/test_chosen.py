"""Which side may be chosen, and how far above the other: the rules of SWEET-RL's released code for
pairs of trajectories (oracles E6, of O3 and O4), on rewards worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.backends.pair.test_contrast import RULES, row

from agentc_backends.data.pair.contrast import build_pairs
from agentc_backends.data.pair.trajectories import PairCounts

SELF = replace(RULES, sources="self")
CODE = replace(SELF, chosen_at_least=1.0, chosen="best")
PAGES = replace(SELF, margin=0.1, margin_is="at_least")
O3 = [[1, 0.2, 1], [0.5, 0.5, 0.9], [0, 1, 0.4], [1, 1, 0.3]]
"""Rewards of three attempts at each of four tasks."""
O4 = [[0.9, 0.7, 0.75], [0.5, 0.55, 0.9]]


def paired(rewards: Sequence[Sequence[float]], rules: Any) -> tuple[list[Any], PairCounts]:
    """(task, chosen attempt, rejected attempt) of each pair."""
    rows = [
        row(str(task), reward, 1, who=f"{task}.{attempt}-", attempt=attempt)
        for task, group in enumerate(rewards)
        for attempt, reward in enumerate(group)
    ]
    pairs, counts = build_pairs([], [rows], rules)
    attempts = [[int(pair[s].split("#")[1]) for s in _SIDES] for pair in pairs]
    return [(int(p["task_id"]), *a) for p, a in zip(pairs, attempts, strict=True)], counts


_SIDES = ("chosen_id", "rejected_id")


def test_one_perfect_attempt_against_each_lower_one() -> None:
    """O3: the first of equal best ones is chosen, none of them is rejected, and a task without a
    perfect attempt gives nothing."""
    pairs, counts = paired(O3, CODE)
    assert pairs == [(0, 0, 1), (2, 1, 0), (2, 1, 2), (3, 0, 2)]
    # Of task 0 the third attempt over the second, of task 3 the second over the third.
    assert counts.facts(len(pairs))["skipped"] == {"chosen_below": 3, "self_not_best": 2}


def test_any_perfect_attempt_against_each_lower_one() -> None:
    pairs, _ = paired(O3, replace(CODE, chosen="any"))
    assert pairs == [(0, 0, 1), (0, 2, 1), (2, 1, 0), (2, 1, 2), (3, 0, 2), (3, 1, 2)]


def test_the_best_of_a_task_need_not_be_perfect() -> None:
    pairs, _ = paired(O3, replace(CODE, chosen_at_least=None))
    assert [pair for pair in pairs if pair[0] == 1] == [(1, 2, 0), (1, 2, 1)]


@pytest.mark.parametrize(("extra", "last"), [(None, "l9"), (5, "l6")])
def test_a_rejected_dialogue_is_whole_unless_a_number_of_rounds_is_set(
    extra: int | None, last: str
) -> None:
    """The winner answers in its second turn, the loser's wrong answer is in its tenth."""
    rows = [row("1", 1.0, 2, who="w"), row("1", 0.0, 10, who="l", attempt=1)]
    [pair], counts = build_pairs([], [rows], replace(CODE, max_extra_rounds=extra))
    assert pair["chosen"][-1]["content"] == "w1"
    assert pair["rejected"][-1]["content"] == last
    assert counts.rejected_cut == (extra is not None)


def test_all_pairs_with_a_gap_of_a_tenth() -> None:
    """O4, whose flat indices are attempt x tasks + task: (0,2), (0,4), (5,1), (5,3)."""
    pairs, _ = paired(O4, PAGES)
    flat = [(chosen * 2 + task, rejected * 2 + task) for task, chosen, rejected in pairs]
    assert flat == [(0, 2), (0, 4), (5, 1), (5, 3)]


@pytest.mark.parametrize(
    ("rewards", "at_least", "above"),
    [
        ((0.8, 0.7), True, True),  # 0.10000000000000009
        ((0.7, 0.6), False, False),  # 0.09999999999999998
        ((0.6, 0.5), False, False),
        ((0.1, 0.0), True, False),
        ((0.5, 0.5), False, False),
    ],
)
def test_floats_differ_as_they_do_in_the_released_code(
    rewards: tuple[float, float], at_least: bool, above: bool
) -> None:
    for rules, expected in ((PAGES, at_least), (replace(PAGES, margin_is="above"), above)):
        pairs, _ = paired([rewards], rules)
        assert bool(pairs) is expected


def test_a_sum_of_shares_reaches_the_bar_it_means() -> None:
    share = sum([0.1] * 10)
    assert share < 1.0
    pairs, _ = paired([(share, 0.3), (1 - 1e-6, 0.3)], CODE)
    assert pairs == [(0, 0, 1)]


def test_an_expert_is_chosen_by_the_same_bar() -> None:
    rules = replace(RULES, chosen_at_least=0.9)
    explored = [row("1", 0.2, 1, who="p"), row("2", 0.7, 1, who="p"), row("3", 0.95, 1, who="p")]
    experts = [row("1", 1.0, 1, who="e"), row("2", 0.8, 1, who="e"), row("3", 0.8, 1, who="e")]
    pairs, counts = build_pairs([experts], [explored], rules)
    assert [(pair["task_id"], pair["outcome"]) for pair in pairs] == [("1", "lose"), ("3", "win")]
    assert counts.skipped["chosen_below"] == 1


def test_the_best_is_of_those_that_began_alike() -> None:
    """Another task message is another beginning; with `contrast: step` so is another prefix."""
    texts = ["t", "t", "u", "u"]
    rows = [
        row("1", reward, 1, who=f"{n}-", attempt=n, text=text)
        for n, (reward, text) in enumerate(zip([0.5, 0.2, 1.0, 0.4], texts, strict=True))
    ]
    pairs, counts = build_pairs([], [rows], replace(SELF, chosen="best"))
    assert [(p["chosen_id"], p["rejected_id"]) for p in pairs] == [("1#0", "1#1"), ("1#2", "1#3")]
    assert counts.skipped["self_other_prompt"] == 4
