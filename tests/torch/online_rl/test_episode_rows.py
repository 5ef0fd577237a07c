"""Rows of episodes: which tokens are the policy's, and which of them a row shows as drawn."""

from __future__ import annotations

import pytest

from agentc_backends.trainers.online_rl.readers import Text, TextPrefix
from agentc_backends.trainers.online_rl.replay import Episode, EpisodeTurn
from agentc_backends.trainers.online_rl.trl import episode_batch, episode_row


def played(*turns: tuple[tuple[int, ...], tuple[int, ...], float]) -> Episode:
    """Turns as (prompt, reply, reward)."""
    return Episode(
        tuple(
            EpisodeTurn(TextPrefix(Text(prompt), len(prompt)), Text(reply), reward)
            for prompt, reply, reward in turns
        )
    )


def test_replies_are_drawn_and_all_else_is_not() -> None:
    row = episode_row(played(((1, 2), (3, 4), -1.0), ((1, 2, 3, 4, 5), (6,), 7.0)))
    assert row.tokens == (1, 2, 3, 4, 5, 6)
    assert row.drawn == (False, False, True, True, False, True)
    assert (row.left_out, row.worth) == (0, 6.0)


def test_a_reply_that_is_shown_in_other_tokens_is_left_out() -> None:
    """`3, 4` was drawn, and is `9` in the next prompt: nothing may be learnt of it there."""
    row = episode_row(played(((1, 2), (3, 4), 0.0), ((1, 2, 9, 5), (6,), 1.0)))
    assert row.tokens == (1, 2, 9, 5, 6)
    assert row.drawn == (False, False, False, False, True)
    assert row.left_out == 1


def test_a_batch_is_cut_before_the_first_token_that_was_drawn_anywhere() -> None:
    rows = [
        episode_row(played(((1, 2, 3), (4,), 0.0))),
        episode_row(played(((1, 2), (3, 4), 0.0), ((1, 2, 3, 4, 5), (6,), 0.0))),
        episode_row(played()),
    ]
    batch = episode_batch(rows, filler=0)
    assert batch.prompts == [[1, 2], [1, 2], [0, 0]]
    assert batch.completions == [[3, 4], [3, 4, 5, 6], [0]]
    assert batch.drawn == [[0, 1], [1, 1, 0, 1], [0]]


@pytest.mark.parametrize("number", [1, 3])
def test_nothing_was_drawn_at_all(number: int) -> None:
    batch = episode_batch([episode_row(played())] * number, filler=7)
    assert batch.completions == [[7]] * number == batch.prompts
    assert batch.drawn == [[0]] * number
