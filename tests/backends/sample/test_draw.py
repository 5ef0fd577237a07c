"""Which trajectories are taken: by a hash of each, or the first ones, attempts in turn."""

from __future__ import annotations

from typing import Any

import pytest

from agentc.kinds.search import DrawnTurns
from agentc_backends.agents.sample.candidates import draw_turns


def rules(**changes: Any) -> DrawnTurns:
    given: dict[str, Any] = {
        "candidates": 2,
        "fraction": 1.0,
        "limit": None,
        "take": "hash",
        "turns": None,
        "on_overflow": "drop",
        "seed": 0,
    }
    return DrawnTurns(**{**given, **changes})


ROWS = [
    {
        "id": f"t{task}#{attempt}",
        "task_id": f"t{task}",
        "attempt": attempt,
        "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}],
        "prompt_length": 1,
        "reward": 0.0,
        "end": "limit",
    }
    for task in range(5)
    for attempt in range(2)
]


def taken(**changes: Any) -> list[str]:
    turns, _ = draw_turns([ROWS], rules(**changes))
    return [turn.id for turn in turns]


def test_published_takes_the_first_attempts_of_all_tasks_before_the_second_ones() -> None:
    # The released data stand attempt by attempt; ours stand task by task.
    assert taken(take="published", fraction=0.6) == [
        "t0#0@0", "t0#1@0", "t1#0@0", "t2#0@0", "t3#0@0", "t4#0@0",
    ]  # fmt: skip


def test_a_hash_draws_by_seed_and_name_and_never_by_place() -> None:
    some = taken(fraction=0.5)
    assert len(some) == 5
    assert some != taken(fraction=0.5, seed=1)
    turned, _ = draw_turns([ROWS[::-1]], rules(fraction=0.5))
    assert sorted(turn.id for turn in turned) == sorted(some)
    # A larger share holds the smaller one.
    assert set(some) < set(taken(fraction=0.8))


@pytest.mark.parametrize(
    ("changes", "count"),
    [({"fraction": 0.7}, 7), ({"fraction": 0.19}, 1), ({"limit": 3}, 3), ({"limit": 99}, 10)],
)
def test_a_share_is_rounded_down_as_published(changes: dict[str, Any], count: int) -> None:
    assert len(taken(**changes)) == count
