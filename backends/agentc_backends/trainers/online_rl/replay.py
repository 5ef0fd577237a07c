"""What was said and what came of it, to be learnt from again; and the numbers that all chance is
made of.

No generator is kept: a draw is a function of the run's seed, what it is for, iteration and step,
so a run that goes on after a kill draws what it would have drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy

from agentc_backends.trainers.online_rl.reading import Text, TextPrefix, whole
from agentc_backends.trainers.online_rl.returns import to_go

Purpose: TypeAlias = Literal["act", "evaluate", "value", "actor", "replay", "imitate"]


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """One reply of an episode, behind its state: mostly a prefix of one text for all turns."""

    state: TextPrefix
    reply: Text
    reward: float


@dataclass(frozen=True, slots=True)
class Played:
    """An episode. Where a limit cut it and there is a value in what would have followed, that is
    `state_after`."""

    turns: tuple[PlayedTurn, ...]
    state_after: TextPrefix | None = None

    @property
    def total(self) -> float:
        """The undiscounted return."""
        return sum(turn.reward for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Utterance:
    """A tuple of the upper level, where an action is a reply. `following` is None where the
    episode ended."""

    state: TextPrefix
    reply: TextPrefix
    reward: float
    following: TextPrefix | None
    to_go: float


class ReplayBuffer:
    """The newest `episodes` episodes, at most `capacity` utterances of them; oldest out first. A
    limit that is None is none.

    `by` says what is drawn: utterances one by one, or whole episodes until there are as many
    utterances as were asked for or more. Of these a causal critic reads all states in one pass.
    """

    def __init__(
        self,
        capacity: int | None,
        discount: float,
        episodes: int | None = None,
        by: Literal["utterances", "episodes"] = "utterances",
    ) -> None:
        self._capacity, self._discount, self._episodes = capacity, discount, episodes
        self._by = by
        self._kept: list[Played] = []
        self._fresh: Sequence[Played] = ()
        self._utterances: list[Utterance] = []

    def __len__(self) -> int:
        return len(self._utterances)

    @property
    def episodes(self) -> Sequence[Played]:
        """Those that are kept, oldest first."""
        return self._kept

    @property
    def fresh(self) -> Sequence[Played]:
        """Those that were added last."""
        return self._fresh

    def add(self, played: Sequence[Played]) -> None:
        """In the order in which they count, whatever order they ended in."""
        self._fresh = played
        self._kept += played
        if self._episodes is not None:
            self._kept = self._kept[-self._episodes :]
        found = [each for one in self._kept for each in utterances(one, self._discount)]
        self._utterances = found
        if self._capacity is None:
            return
        self._utterances = found[-self._capacity :]
        if self._by == "episodes":
            dropped, excess = 0, len(found) - self._capacity
            while excess > 0:
                excess -= len(self._kept[dropped].turns)
                dropped += 1
            del self._kept[: min(dropped, len(self._kept) - 1)]

    def draw(self, number: int, key: int, among: Sequence[Played] | None = None) -> list[Utterance]:
        """So many, evenly and with replacement, of all that is kept or of some episodes. Raises
        ValueError where there is none."""
        chance = numpy.random.Generator(numpy.random.Philox(key=key))
        if self._by == "utterances":
            rows = self._utterances
            if among is not None:
                rows = [row for one in among for row in utterances(one, self._discount)]
            _require(rows)
            return [rows[place] for place in chance.integers(0, len(rows), number)]
        whole = [one for one in (self._kept if among is None else among) if one.turns]
        _require(whole)
        drawn: list[Utterance] = []
        while len(drawn) < number:
            drawn += utterances(whole[chance.integers(0, len(whole))], self._discount)
        return drawn


def _require(rows: Sequence[object]) -> None:
    if not rows:
        raise ValueError("nothing was played yet")


def utterances(played: Played, discount: float) -> Iterator[Utterance]:
    """Of an episode, in its order."""
    worth = to_go([turn.reward for turn in played.turns], discount)
    followers = [*(turn.state for turn in played.turns[1:]), played.state_after]
    for number, turn in enumerate(played.turns):
        yield Utterance(
            state=turn.state,
            reply=whole(turn.reply),
            reward=turn.reward,
            following=followers[number],
            to_go=worth[number],
        )


def key_of(seed: int, purpose: Purpose, iteration: int, *places: int) -> int:
    """63 bits that are the same for the same names and as good as independent for others."""
    name = "/".join(map(str, (seed, purpose, iteration, *places)))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1
