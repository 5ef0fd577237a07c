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

from agentc_backends.trainers.online_rl.reading import Text, TextPrefix
from agentc_backends.trainers.online_rl.returns import to_go

Purpose: TypeAlias = Literal["act", "evaluate", "value", "actor", "replay", "imitate"]


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """One reply of an episode. `state` is how many tokens of the episode's text stood before it."""

    state: int
    reply: Text
    reward: float


@dataclass(frozen=True, slots=True)
class Played:
    """An episode: its text holds every state as a prefix. `truncated` where a limit cut it, so that
    there is a value in what would have followed (`state_after`)."""

    text: Text
    turns: tuple[PlayedTurn, ...]
    state_after: int | None = None

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
    """The newest `episodes` episodes, at most `capacity` utterances of them; oldest out first."""

    def __init__(self, capacity: int, discount: float, episodes: int | None = None) -> None:
        self._capacity, self._discount, self._episodes = capacity, discount, episodes
        self._kept: list[Played] = []
        self._utterances: list[Utterance] = []

    def __len__(self) -> int:
        return len(self._utterances)

    @property
    def episodes(self) -> Sequence[Played]:
        """Those that are kept, oldest first."""
        return self._kept

    def add(self, played: Sequence[Played]) -> None:
        """In the order in which they count, whatever order they ended in."""
        self._kept += played
        if self._episodes is not None:
            self._kept = self._kept[-self._episodes :]
        found = [each for one in self._kept for each in utterances(one, self._discount)]
        self._utterances = found[-self._capacity :]

    def draw(self, number: int, key: int) -> list[Utterance]:
        """So many, evenly and with replacement. Raises ValueError for an empty buffer."""
        if not self._utterances:
            raise ValueError("nothing was played yet")
        chance = numpy.random.Generator(numpy.random.Philox(key=key))
        return [self._utterances[place] for place in chance.integers(0, len(self), number)]


def utterances(played: Played, discount: float) -> Iterator[Utterance]:
    """Of an episode, in its order."""
    worth = to_go([turn.reward for turn in played.turns], discount)
    states = [TextPrefix(played.text, turn.state) for turn in played.turns]
    after = None if played.state_after is None else TextPrefix(played.text, played.state_after)
    for number, turn in enumerate(played.turns):
        yield Utterance(
            state=states[number],
            reply=TextPrefix(turn.reply, len(turn.reply.ids)),
            reward=turn.reward,
            following=states[number + 1] if number + 1 < len(states) else after,
            to_go=worth[number],
        )


def key_of(seed: int, purpose: Purpose, iteration: int, *places: int) -> int:
    """63 bits that are the same for the same names and as good as independent for others."""
    name = "/".join(map(str, (seed, purpose, iteration, *places)))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1
