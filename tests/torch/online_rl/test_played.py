"""Rows of episodes and what is learnt from: no token is lost, and turns earn the whole reward."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from agentc_backends.trainers.online_rl.replay import (
    decode_turns,
    encode_turns,
    episode_of_row,
    turn_rewards,
    with_turns,
)
from agentc_backends.trainers.online_rl.sampling import TurnTokens

GROWING = [
    TurnTokens((1, 2), (3, 0), False),
    TurnTokens((1, 2, 3, 4), (5, 6), True),
    TurnTokens((1, 2, 3, 4, 5), (7,), False),
]
ANEW = [
    TurnTokens((1, 2, 3), (9,), False),
    TurnTokens((1, 2, 8, 8), (9,), False),
    TurnTokens((1,), (0,), False),
]


@pytest.mark.parametrize("said", [GROWING, ANEW, []])
def test_tokens_come_back(said: list[TurnTokens]) -> None:
    assert decode_turns(encode_turns(said)) == said


def test_a_conversation_grows_by_what_is_new() -> None:
    assert [turn["added"] for turn in encode_turns(GROWING)] == [(1, 2), (3, 4), (5,)]


def row(rewards: list[float], reward: float) -> dict[str, object]:
    return {"id": "a#0", "turns": len(rewards), "rewards": rewards, "reward": reward}


@pytest.mark.parametrize(
    ("kind", "rewards", "reward", "earned"),
    [
        ("sum", [-1, -1, 10], 8, [-1, -1, 10]),
        ("terminal", [0, 0, 0.7], 0.7, [0, 0, 0.7]),
        ("latest", [0.2, 0.5, 0.4], 0.4, [0.2, 0.3, -0.1]),
        ("max", [0.2, 0.5, 0.4], 0.5, [0.2, 0.3, 0]),
        # A reply without an action that ends the episode with the lowest reward.
        ("sum", [-1, 0], -20, [-1, -19]),
        ("terminal", [0, 0], -1, [0, -1]),
        ("sum", [], 0, []),
    ],
)
def test_what_turns_earn_sums_to_the_reward(
    kind: str, rewards: list[float], reward: float, earned: list[float]
) -> None:
    found = turn_rewards(row(rewards, reward), kind)
    assert found == pytest.approx(earned)
    assert sum(found) == pytest.approx(reward if rewards else 0)


def test_states_of_one_conversation_are_prefixes_of_one_text() -> None:
    told = with_turns(row([-1, -1, 0], -2), GROWING, "sum")
    turns = episode_of_row(told).turns
    assert [turn.state.ids for turn in turns] == [one.prompt for one in GROWING]
    assert len({id(turn.state.text) for turn in turns}) == 1
    assert [turn.reply.ids for turn in turns] == [one.reply for one in GROWING]
    apart = episode_of_row(with_turns(row([-1, -1, 0], -2), ANEW, "sum")).turns
    assert [turn.state.ids for turn in apart] == [one.prompt for one in ANEW]


def test_turns_without_their_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="3 turns, and tokens of 2"):
        with_turns(row([0, 0, 0], 0), GROWING[:2], "sum")
