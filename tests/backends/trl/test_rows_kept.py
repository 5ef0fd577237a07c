"""Which trajectories an SFT imitates, and what it says when none is left. All trainers share it."""

from __future__ import annotations

from typing import Any

import pytest

from agentc_backends.chat.rows import Counts, MaskRules, RowsError, _checked
from agentc_backends.trl_trainers.job_sft import select_rows


def rows(*rewards: float | None, end: str = "failure") -> list[dict[str, Any]]:
    return [{"id": str(number), "reward": r, "end": end} for number, r in enumerate(rewards)]


def test_rewards_and_errors_are_counted() -> None:
    kept, left_out = select_rows(rows(1, 0.5, 0, None) + rows(1, end="error"), 0.5)
    assert [row["reward"] for row in kept] == [1, 0.5]
    assert left_out == {"errors_left_out": 1, "below_min_reward": 2}


def test_data_without_rewards_are_taken_as_they_are() -> None:
    assert select_rows([{"id": "a"}], None)[0] == [{"id": "a"}]


@pytest.mark.parametrize(
    ("given", "min_reward", "says"),
    [
        (
            rows(0, 0, 0, 0, 0, 0),
            8,
            "none of 6 trajectories reaches min_reward 8 (best: 0); lower it, or sample more",
        ),
        (
            rows(0.25, None) + rows(None, end="error"),
            0.5,
            "none of 2 trajectories reaches min_reward 0.5 (best: 0.25); 1 more ended in an "
            "infrastructure error; lower it, or sample more",
        ),
        (rows(None), 0.5, "the one trajectory does not reach min_reward 0.5 (none has a reward)"),
        (
            rows(None, None, end="error"),
            None,
            "every trajectory ended in an infrastructure error (2 of 2)",
        ),
    ],
)
def test_an_empty_choice_says_why(
    given: list[dict[str, Any]], min_reward: float | None, says: str
) -> None:
    with pytest.raises(RowsError) as refused:
        select_rows(given, min_reward)
    assert says in str(refused.value)


def test_rows_that_are_all_dropped_name_the_limit_and_no_rows_do_not() -> None:
    rules = MaskRules(loss_on="all_replies", max_length=512, truncation="drop")
    with pytest.raises(RowsError, match=r"left out all 3, .* 900 tokens .*max_length is 512"):
        _checked(Counts(dropped=3, longest=900), rules)
    with pytest.raises(RowsError, match="the data hold none"):
        _checked(Counts(), rules)
