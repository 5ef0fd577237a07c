"""Pairs of trajectories that share a prefix: the step behind it, or the rest (ETO, table 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.backends.pair.test_contrast import RULES, row, texts

from agentc_backends.data.pair.contrast import build_pairs

STEP = replace(RULES, contrast="step")
REST = replace(RULES, contrast="rest")
EXPERT = row("1", 1.0, 4, who="e")


def behind(
    given: int, reward: float | None, more: int, *, attempt: int = 0, who: str = "p", **changes: Any
) -> dict[str, Any]:
    """The expert's first `given` turns, marked as its own, and `more` of the policy's."""
    whole = row("1", reward, given + more, who=who, attempt=attempt, **changes)
    first = whole["prompt_length"]
    for number in range(given):
        whole["messages"][first + 2 * number] |= {"content": f"e{number}", "loss": False}
    whole["origin"] = {"input": 0, "id": "1#0", "turns": given}
    return whole


def built(rules: Any, *explored: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    pairs, counts = build_pairs([[EXPERT]], [list(explored)], rules)
    return pairs, counts.facts(len(pairs))


def test_step_is_the_reply_behind_the_prefix_on_both_sides() -> None:
    [pair], facts = built(STEP, behind(2, 0.25, 3))
    assert texts(pair["prompt"]) == ["I", "OK", "t", "e0", "o0", "e1", "o1"]
    assert (texts(pair["chosen"]), texts(pair["rejected"])) == (["e2"], ["p2"])
    assert (pair["chosen_reward"], pair["rejected_reward"]) == (1.0, 0.25)
    assert (pair["shared_turns"], pair["outcome"], facts["rejected_cut"]) == (2, "lose", 0)
    assert all(set(m) == {"role", "content"} for m in [*pair["prompt"], *pair["chosen"]])


def test_policy_that_does_better_from_there_has_the_chosen_step() -> None:
    expert = row("1", 0.5, 4, who="e")
    pairs, _ = build_pairs([[expert]], [[behind(1, 0.75, 2)]], STEP)
    assert texts(pairs[0]["chosen"]) == ["p1"]
    assert texts(pairs[0]["rejected"]) == ["e1"]
    assert pairs[0]["outcome"] == "win"


def test_each_step_of_the_expert_makes_a_pair() -> None:
    """ETO's step-wise data: the expert is followed for t - 1 turns, for every t."""
    pairs, _ = built(STEP, *(behind(given, 0.0, 2, attempt=given) for given in range(4)))
    assert [(len(p["prompt"]), texts(p["chosen"]), texts(p["rejected"])) for p in pairs] == [
        (3 + 2 * given, [f"e{given}"], [f"p{given}"]) for given in range(4)
    ]
    assert len({pair["id"] for pair in pairs}) == 4


def test_rest_is_all_behind_the_prefix_and_is_cut_as_whole_trajectories_are() -> None:
    [pair], facts = built(REST, behind(2, 0.0, 12))
    assert texts(pair["chosen"]) == ["e2", "o2", "e3"]
    # Four turns of the expert and five more rounds make nine, of which two are shared.
    assert texts(pair["rejected"])[::2] == [f"p{number}" for number in range(2, 9)]
    assert facts["rejected_cut"] == 1


def test_mixture_contrasts_trajectories_without_a_prefix_whole() -> None:
    (whole, step), _ = built(STEP, row("1", 0.0, 2, who="x"), behind(1, 0.0, 2, attempt=1))
    assert texts(whole["chosen"]) == ["e0", "o0", "e1", "o1", "e2", "o2", "e3"]
    assert texts(whole["rejected"]) == ["x0", "o0", "x1"]
    assert "shared_turns" not in whole
    assert (texts(step["chosen"]), texts(step["rejected"])) == (["e1"], ["p1"])


def test_without_contrast_both_sides_are_whole_and_unmarked() -> None:
    [pair], _ = built(RULES, behind(2, 0.0, 1))
    assert texts(pair["rejected"]) == ["e0", "o0", "e1", "o1", "p2"]
    assert all("loss" not in message for message in pair["rejected"])


@pytest.mark.parametrize(
    ("explored", "reason"),
    [
        (behind(1, 0.0, 1, who="e"), "same_text"),
        (behind(2, 0.0, 0), "without_step"),
        ({**behind(2, 0.0, 1, who="x"), "messages": row("1", 0.0, 3, who="x")["messages"]},
         "other_prefix"),
    ],
)  # fmt: skip
def test_what_makes_no_pair_is_counted(explored: dict[str, Any], reason: str) -> None:
    pairs, facts = built(STEP, explored)
    assert not pairs
    assert facts["skipped"] == {reason: 1}


def test_expert_is_the_one_that_the_prefix_was_cut_from() -> None:
    """Two experts of one prompt: the step is contrasted with the one that shares the prefix."""
    other = {**row("1", 1.0, 4, who="f"), "id": "1#1", "attempt": 1}
    pairs, _ = build_pairs([[other, EXPERT]], [[behind(1, 0.0, 1)]], STEP)
    assert texts(pairs[0]["chosen"]) == ["e1"]


def test_continuations_of_one_prefix_are_paired_among_themselves() -> None:
    own = replace(STEP, sources="self")
    pairs, counts = build_pairs(
        [],
        [
            [
                behind(1, 0.0, 2, attempt=0),
                behind(1, 1.0, 2, attempt=1, who="q"),
                behind(2, 1.0, 2, attempt=2, who="r"),
            ]
        ],
        own,
    )
    [pair] = pairs
    assert (texts(pair["chosen"]), texts(pair["rejected"])) == (["q1"], ["p1"])
    assert texts(pair["prompt"])[-2:] == ["e0", "o0"]
    assert counts.skipped["self_other_prefix"] == 2
