"""What is learnt from again: tuples of episodes, and draws that nothing but their names decide."""

from __future__ import annotations

from collections import Counter

import pytest

from agentc_backends.trainers.online_rl.readers import Text, TextPrefix
from agentc_backends.trainers.online_rl.replay import (
    Episode,
    EpisodeTurn,
    ReplayBuffer,
    key_of,
    utterances,
)


def episode(first: int, rewards: list[float], after: int | None = None) -> Episode:
    """States are 1, 3, 5... tokens of one text; each reply is one token."""
    text = Text(tuple(range(first, first + 2 * len(rewards) + 1)))
    turns = tuple(
        EpisodeTurn(TextPrefix(text, 2 * place + 1), Text((first + 2 * place + 1,)), reward)
        for place, reward in enumerate(rewards)
    )
    return Episode(turns, None if after is None else TextPrefix(text, after))


def test_tuples_of_an_episode() -> None:
    played = episode(10, [-1, -1, 0])
    found = list(utterances(played, 0.95))
    assert [each.state.ids for each in found] == [(10,), (10, 11, 12), (10, 11, 12, 13, 14)]
    assert [each.reply.ids for each in found] == [(11,), (13,), (15,)]
    assert [each.reward for each in found] == [-1, -1, 0]
    assert [each.to_go for each in found] == pytest.approx([-1.95, -1, 0])
    assert [each.following for each in found] == [found[1].state, found[2].state, None]
    assert played.total == -2


def test_an_episode_that_was_cut_goes_on_in_value() -> None:
    *_, last = utterances(episode(10, [-1, -1], after=5), 0.95)
    assert last.following is not None
    assert last.following.ids == (10, 11, 12, 13, 14)


def test_the_newest_are_kept() -> None:
    buffer = ReplayBuffer(capacity=5, discount=1.0, episodes=3)
    buffer.add([episode(100 * n, [-1, -1]) for n in range(4)])
    assert [each.turns[0].state.ids[0] for each in buffer.episodes] == [100, 200, 300]
    assert len(buffer) == 5
    drawn = {each.state.ids[0] for each in buffer.draw(200, 1)}
    assert drawn == {100, 200, 300}
    buffer.add([episode(900, [0] * 9)])
    assert {each.state.ids[0] for each in buffer.draw(200, 1)} == {900}


def test_draws_are_even_and_follow_from_their_names() -> None:
    """Upstream's ring drew the newest twice as often once it had turned over."""
    buffer = ReplayBuffer(capacity=4, discount=1.0)
    buffer.add([episode(10 * n, [-1]) for n in range(6)])
    drawn = buffer.draw(4000, key_of(0, "replay", 3))
    counts = Counter(each.state.ids[0] for each in drawn)
    assert set(counts) == {20, 30, 40, 50}
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 16.3
    assert drawn == buffer.draw(4000, key_of(0, "replay", 3))
    keys = {
        key_of(seed, purpose, iteration, place)
        for seed in (0, 1)
        for purpose in ("act", "value")
        for iteration in (0, 1, 10)
        for place in (0, 1, 11)
    }
    assert len(keys) == 36
    with pytest.raises(ValueError, match="nothing was played"):
        ReplayBuffer(capacity=1, discount=1.0).draw(1, 0)


def test_whole_episodes_are_drawn_until_there_are_enough() -> None:
    buffer = ReplayBuffer(capacity=7, discount=1.0, by="episodes")
    buffer.add([episode(100 * n, [-1, -1, 0]) for n in range(4)])
    drawn = buffer.draw(5, 3)
    assert len(drawn) == 6
    assert [each.state.ids[0] for each in drawn[:3]] == [drawn[0].state.ids[0]] * 3
    # The oldest two would be beyond the capacity.
    assert {each.state.ids[0] for each in buffer.draw(300, 1)} == {200, 300}
    assert [each.turns[0].state.ids[0] for each in buffer.fresh] == [0, 100, 200, 300]
