"""Which trajectories an SFT imitates, and what it says when none is left. All trainers share it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.backends.conftest import write_job

from agentc.kinds.training import RowChoice
from agentc.program.job import Job
from agentc_backends.data.chat.formats import NoRowsError, RowsError
from agentc_backends.data.chat.rows import MaskRules, RowCounts, _checked
from agentc_backends.trainers.common.rows import rows_to_imitate, select_rows


def rows(*rewards: float | None, end: str = "failure") -> list[dict[str, Any]]:
    return [{"id": str(number), "reward": r, "end": end} for number, r in enumerate(rewards)]


def test_rewards_and_errors_are_counted() -> None:
    kept, left_out = select_rows(
        rows(1, 0.5, 0, None) + rows(1, end="error"), RowChoice(min_reward=0.5)
    )
    assert [row["reward"] for row in kept] == [1, 0.5]
    assert left_out == {"errors_left_out": 1, "below_min_reward": 2}


def test_data_without_rewards_are_taken_as_they_are() -> None:
    assert select_rows([{"id": "a"}], RowChoice())[0] == [{"id": "a"}]


def of_tasks(**rewards: list[float | None]) -> list[dict[str, Any]]:
    return [
        {"id": f"{task}#{number}", "task_id": task, "reward": reward, "end": "failure"}
        for task, found in rewards.items()
        for number, reward in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("best", "kept"),
    [
        (1, ["a#1", "b#0", "c#1"]),  # the first of two that are equal, and a reward before none
        (2, ["a#1", "a#2", "b#0", "b#1", "c#0", "c#1"]),
        (9, ["a#0", "a#1", "a#2", "b#0", "b#1", "b#2", "c#0", "c#1"]),
    ],
)
def test_the_best_of_a_task_are_kept_in_their_order(best: int, kept: list[str]) -> None:
    given = of_tasks(a=[0.0, 1.0, 0.5], b=[0.5, 0.5, 0.5], c=[None, -1.0])
    rows, left_out = select_rows(given, RowChoice(best_per_task=best))
    assert [row["id"] for row in rows] == kept
    assert left_out["not_best_left_out"] == len(given) - len(kept)


def test_the_best_of_a_task_is_one_of_all_inputs_that_is_good_enough() -> None:
    given = of_tasks(a=[0.2]) + of_tasks(a=[0.9], b=[0.4])
    rows, left_out = select_rows(given, RowChoice(min_reward=0.5, best_per_task=1))
    assert [row["reward"] for row in rows] == [0.9]
    assert left_out == {"errors_left_out": 0, "below_min_reward": 2, "not_best_left_out": 0}


@pytest.mark.parametrize(
    ("rewards", "share", "kept"),
    [
        # The released offline code keeps the places 8, 4 and 1: of equal ones the first.
        ([-5, -3, -3, -8, -2, -3, -7, -9, -1, -4], 0.3, [1, 4, 8]),
        ([0, 1, None, 2], 0.5, [3]),  # half of those that have a reward, rounded down
        ([1, 1, 1], 1.0, [0, 1, 2]),
        ([*range(100)], 0.29, [*range(71, 100)]),
    ],
)
def test_the_best_share_of_all(rewards: list[float | None], share: float, kept: list[int]) -> None:
    found, left_out = select_rows(rows(*rewards), RowChoice(keep_best=share))
    assert [row["id"] for row in found] == [str(number) for number in kept]
    assert left_out["below_best_share"] == len(rewards) - len(kept)


def test_the_best_share_is_of_what_is_good_enough_and_whole() -> None:
    given = rows(*range(10)) + rows(99, end="error")
    found, left_out = select_rows(given, RowChoice(min_reward=5, keep_best=0.4, best_per_task=1))
    assert [row["reward"] for row in found] == [8, 9]
    assert (left_out["errors_left_out"], left_out["below_min_reward"]) == (1, 5)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (rows(1, 2, 3, 4, 5), "keep_best 0.1 of 5 trajectories is less than one; raise it"),
        (rows(None, None), "none of 2 has a reward for `keep_best` to go by"),
    ],
)
def test_a_share_of_nothing_says_why(given: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(NoRowsError, match=says):
        select_rows(given, RowChoice(keep_best=0.1))


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
        select_rows(given, RowChoice(min_reward=min_reward))
    assert says in str(refused.value)


def test_rows_that_are_all_dropped_name_the_limit_and_no_rows_do_not() -> None:
    rules = MaskRules(loss_on="all_replies", max_length=512, truncation="drop")
    with pytest.raises(RowsError, match=r"left out all 3, .* 900 tokens .*max_length is 512"):
        _checked(RowCounts(dropped=3, longest=900), rules)
    with pytest.raises(RowsError, match="the data hold none"):
        _checked(RowCounts(), rules)


def test_of_pairs_the_chosen_side_is_imitated_behind_its_prompt(tmp_path: Path) -> None:
    asked, said = {"role": "user", "content": "?"}, {"role": "assistant", "content": "OK"}
    good, bad = ({"role": "assistant", "content": word} for word in ("good", "bad"))
    pairs = [
        {"id": f"t#0@1:{n}-9", "task_id": "t", "prompt": [asked, said, asked], "chosen": [good],
         "rejected": [bad], "chosen_reward": 0.25 * n, "rejected_reward": -1.0}
        for n in range(3)
    ]  # fmt: skip
    (tmp_path / "in").mkdir()
    lines = "".join(json.dumps(pair) + "\n" for pair in pairs)
    (tmp_path / "in" / "pairs.jsonl").write_text(lines, encoding="utf-8")
    job = Job(write_job(tmp_path / "job", {}, inputs={"data": [tmp_path / "in"]}))
    kept, left_out = rows_to_imitate(job, RowChoice(min_reward=0.2))
    assert [row["messages"] for row in kept] == [[asked, said, asked, good]] * 2
    # The reply inside the prompt is the prompt's: what is trained begins behind it.
    assert {row["prompt_length"] for row in kept} == {3}
    assert left_out["below_min_reward"] == 1
