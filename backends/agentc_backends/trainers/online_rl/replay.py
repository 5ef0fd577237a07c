"""Episodes to learn from: the replay buffer, their rows in a file, and recorded trajectories.

A row stores the tokens of a turn's prompt as what it adds to the prompt before, so that it grows
with the episode and not with its square. No random generator has a state: each draw is a function
of the run's seed, its purpose, iteration and step, so a resumed run draws what it would have drawn.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy

from agentc_backends.agents.common.failures import FatalError
from agentc_backends.data.chat.rows import split_by_turns, trained_turns
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.trainers.online_rl.losses import to_go
from agentc_backends.trainers.online_rl.readers import Text, TextPrefix, whole_text
from agentc_backends.trainers.online_rl.sampling import TurnTokens

Purpose: TypeAlias = Literal["act", "evaluate", "value", "actor", "replay", "imitate"]
RewardKind: TypeAlias = Literal["sum", "terminal", "latest", "max"]
"""How the rewards of steps make an episode's."""
TOKENS = "turn_tokens"
"""Of a row: for each turn `kept` (the number of tokens shared with the prompt before), `added`
after them, `reply`, and whether that was `cut` at its limit."""
EARNED = "turn_rewards"
"""Of a row: the reward of each turn; their sum is the episode's."""
_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class EpisodeTurn:
    """A reply of an episode and the state before it, mostly a prefix of one text for all turns."""

    state: TextPrefix
    reply: Text
    reward: float


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode. Where a limit cut it, `state_after` may be the state from which it would have
    continued, whose value counts."""

    turns: tuple[EpisodeTurn, ...]
    state_after: TextPrefix | None = None

    @property
    def total(self) -> float:
        """The undiscounted return."""
        return sum(turn.reward for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Utterance:
    """A transition of the upper level, where an action is a reply. `following` is None where the
    episode ended."""

    state: TextPrefix
    reply: TextPrefix
    reward: float
    following: TextPrefix | None
    to_go: float


class ReplayBuffer:
    """The newest `episodes` episodes, at most `capacity` utterances of them; None is no limit.

    `by` is the unit that is drawn: single utterances, or whole episodes until there are at least as
    many utterances as requested. A causal critic reads all states of an episode in one pass.
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
        self._kept: list[Episode] = []
        self._fresh: Sequence[Episode] = ()
        self._utterances: list[Utterance] = []

    def __len__(self) -> int:
        return len(self._utterances)

    @property
    def episodes(self) -> Sequence[Episode]:
        """Those in the buffer, oldest first."""
        return self._kept

    @property
    def fresh(self) -> Sequence[Episode]:
        """Those that were added last."""
        return self._fresh

    def add(self, played: Sequence[Episode]) -> None:
        """Add the episodes of an iteration, in their order of number."""
        self._fresh = played
        self._kept += played
        if self._episodes is not None:
            self._kept = self._kept[-self._episodes :]
        rows = [row for episode in self._kept for row in utterances(episode, self._discount)]
        self._utterances = rows
        if self._capacity is None:
            return
        self._utterances = rows[-self._capacity :]
        if self._by == "episodes":
            dropped, excess = 0, len(rows) - self._capacity
            while excess > 0:
                excess -= len(self._kept[dropped].turns)
                dropped += 1
            del self._kept[: min(dropped, len(self._kept) - 1)]

    def draw(
        self, number: int, key: int, among: Sequence[Episode] | None = None
    ) -> list[Utterance]:
        """`number` utterances, uniformly and with replacement, from the buffer or from the episodes
        `among`. Raises ValueError where there is none."""
        generator = numpy.random.Generator(numpy.random.Philox(key=key))
        if self._by == "utterances":
            rows = self._utterances
            if among is not None:
                rows = [row for episode in among for row in utterances(episode, self._discount)]
            _require(rows)
            return [rows[place] for place in generator.integers(0, len(rows), number)]
        episodes = [each for each in (self._kept if among is None else among) if each.turns]
        _require(episodes)
        drawn: list[Utterance] = []
        while len(drawn) < number:
            drawn += utterances(episodes[generator.integers(0, len(episodes))], self._discount)
        return drawn


def _require(rows: Sequence[object]) -> None:
    if not rows:
        raise ValueError("nothing was played yet")


def utterances(episode: Episode, discount: float) -> Iterator[Utterance]:
    """The transitions of an episode, in its order."""
    returns = to_go([turn.reward for turn in episode.turns], discount)
    following = [*(turn.state for turn in episode.turns[1:]), episode.state_after]
    for number, turn in enumerate(episode.turns):
        yield Utterance(
            state=turn.state,
            reply=whole_text(turn.reply),
            reward=turn.reward,
            following=following[number],
            to_go=returns[number],
        )


def key_of(seed: int, purpose: Purpose, iteration: int, *places: int) -> int:
    """63 bits, equal for equal arguments and independent for others."""
    name = "/".join(map(str, (seed, purpose, iteration, *places)))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def with_turns(row: Mapping[str, Any], turns: Sequence[TurnTokens], kind: str) -> dict[str, Any]:
    """A row of trajectories with the tokens and rewards of its turns. Raises ValueError where their
    numbers differ."""
    if len(turns) != row["turns"]:
        raise ValueError(f"{row['id']}: {row['turns']} turns, and tokens of {len(turns)}")
    return {**row, TOKENS: encode_turns(turns), EARNED: turn_rewards(row, kind)}


def without_turns(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of trajectories alone, for episodes of an evaluation."""
    return {name: value for name, value in row.items() if name not in (TOKENS, EARNED)}


def encode_turns(turns: Iterable[TurnTokens]) -> list[dict[str, Any]]:
    """The turns of an episode for a row, each prompt as what it adds."""
    encoded: list[dict[str, Any]] = []
    before: tuple[int, ...] = ()
    for turn in turns:
        kept = _common_length(before, turn.prompt)
        added = turn.prompt[kept:]
        encoded.append({"kept": kept, "added": added, "reply": turn.reply, "cut": turn.cut})
        before = turn.prompt
    return encoded


def decode_turns(encoded: Iterable[Mapping[str, Any]]) -> list[TurnTokens]:
    """The turns of a row."""
    turns: list[TurnTokens] = []
    before: tuple[int, ...] = ()
    for turn in encoded:
        before = (*before[: turn["kept"]], *turn["added"])
        turns.append(TurnTokens(before, tuple(turn["reply"]), turn["cut"]))
    return turns


def turn_rewards(row: Mapping[str, Any], kind: str) -> list[float]:
    """The reward of each turn; they sum to the episode's. Where rewards of steps are the score so
    far (`latest`, `max`), a turn's is the change of it; with `terminal` the last turn has all of
    the episode's reward."""
    steps: list[float] = row["rewards"]
    match kind:
        case "sum":
            earned = [float(step) for step in steps]
        case "terminal":
            earned = [0.0] * len(steps)
        case _:
            earned, score = [], 0.0
            for step in steps:
                now = max(score, step) if kind == "max" else step
                earned.append(now - score)
                score = now
    if earned:  # a reply that ends the episode may have cost more than its step
        earned[-1] += row["reward"] - sum(earned)
    return earned


def episode_of_row(row: Mapping[str, Any]) -> Episode:
    """The episode of a row with turns."""
    turns = decode_turns(row[TOKENS])
    states = _states([turn.prompt for turn in turns])
    return Episode(
        tuple(
            EpisodeTurn(state, Text(turn.reply), reward)
            for state, turn, reward in zip(states, turns, row[EARNED], strict=True)
        )
    )


def _states(prompts: Sequence[tuple[int, ...]]) -> list[TextPrefix]:
    """Prompts as prefixes of as few texts as possible: from the last one on, a prompt that the next
    one begins with is a prefix of that one's text."""
    states: list[TextPrefix] = []
    for prompt in reversed(prompts):
        text = states[-1].text if states else None
        if text is None or text.ids[: len(prompt)] != prompt:
            text = Text(prompt)
        states.append(TextPrefix(text, len(prompt)))
    return states[::-1]


def _common_length(one: Sequence[int], other: Sequence[int]) -> int:
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(place for place in range(length) if one[place] != other[place])


@dataclass(slots=True)
class Recording:
    """The rows to learn from, and the numbers of episodes that are left out: those that ended in an
    error, those whose policy no longer saw some turns (at which turn is not recorded), and those
    with no reply or an empty one."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    errors_left_out: int = 0
    forgotten_left_out: int = 0
    wordless_left_out: int = 0


def tokenise_episodes(
    rows: Sequence[Mapping[str, Any]], encoder: Encoder, kind: RewardKind, context: int
) -> Recording:
    """Rows of trajectories with turns, as an online run writes them. Texts are tokenised as in
    supervised training, each reply after the prompt that its policy saw.

    Raises FatalError where the rewards of steps do not make the episode's by `kind`, where a turn
    is longer than the model's `context`, and where no episode is left; FormatError for what the
    chat format cannot express.
    """
    recording = Recording()
    for row in rows:
        if row["end"] == "error":
            recording.errors_left_out += 1
        elif row.get("forgotten"):
            recording.forgotten_left_out += 1
        else:
            turns = _turn_tokens(row, encoder)
            if not turns or not all(turn.reply for turn in turns):
                recording.wordless_left_out += 1
                continue
            _check_row(row, turns, kind, context)
            recording.rows.append(with_turns(row, turns, kind))
    if not recording.rows:
        raise FatalError(
            f"no episode to learn from: of {len(rows)}, {recording.errors_left_out} ended in an "
            f"infrastructure error, {recording.forgotten_left_out} had turns that their policy no "
            f"longer saw, and {recording.wordless_left_out} hold no reply, or an empty one"
        )
    return recording


def _turn_tokens(row: Mapping[str, Any], encoder: Encoder) -> list[TurnTokens]:
    found = []
    for messages, turns in split_by_turns(row, trained_turns(row, "after_prompt")):
        rows = encoder.encode_turns(messages, turns)
        for place, turn in enumerate(sorted(turns)):
            encoded = rows[place if len(rows) > 1 else 0]
            first = encoded.first_of(turn)
            reply = tuple(
                token
                for token, of in zip(encoded.ids[first:], encoded.turns[first:], strict=True)
                if of == turn
            )
            cut = bool(messages[turn].get("cut"))
            found.append(TurnTokens(tuple(encoded.ids[:first]), reply, cut))
    return found


def _check_row(
    row: Mapping[str, Any], turns: Sequence[TurnTokens], kind: RewardKind, context: int
) -> None:
    longest = max(len(turn.prompt) + len(turn.reply) for turn in turns)
    if longest > context:
        raise FatalError(
            f"a turn of episode {row['id']} has {longest} tokens with its prompt, and the model "
            f"reads {context}; take a model with a longer context, or shorter episodes"
        )
    rewards = row["rewards"]
    # A reply without an action may have a cost that is in no step's reward.
    if row["invalid"] or not rewards:
        return
    total = {"sum": math.fsum(rewards), "max": max(rewards)}.get(kind, rewards[-1])
    if not math.isclose(total, row["reward"], abs_tol=_TOLERANCE):
        raise FatalError(
            f"the reward of episode {row['id']} is {row['reward']:g}, and by `rewards: {kind}` its "
            f"turns make it {total:g}; set `rewards` to what its environment does "
            "(sum, terminal, latest or max)"
        )
