"""What was said and what came of it, to be learnt from again; and the numbers that all chance is
made of.

No generator is kept: a draw is a function of the run's seed, what it is for, iteration and step,
so a run that goes on after a kill draws what it would have drawn.
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


@dataclass(frozen=True, slots=True)
class EpisodeTurn:
    """One reply of an episode, behind its state: mostly a prefix of one text for all turns."""

    state: TextPrefix
    reply: Text
    reward: float


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode. Where a limit cut it and there is a value in what would have followed, that is
    `state_after`."""

    turns: tuple[EpisodeTurn, ...]
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
        self._kept: list[Episode] = []
        self._fresh: Sequence[Episode] = ()
        self._utterances: list[Utterance] = []

    def __len__(self) -> int:
        return len(self._utterances)

    @property
    def episodes(self) -> Sequence[Episode]:
        """Those that are kept, oldest first."""
        return self._kept

    @property
    def fresh(self) -> Sequence[Episode]:
        """Those that were added last."""
        return self._fresh

    def add(self, played: Sequence[Episode]) -> None:
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

    def draw(
        self, number: int, key: int, among: Sequence[Episode] | None = None
    ) -> list[Utterance]:
        """So many, evenly and with replacement, of all that is kept or of some episodes. Raises
        ValueError where there is none."""
        chance = numpy.random.Generator(numpy.random.Philox(key=key))
        if self._by == "utterances":
            rows = self._utterances
            if among is not None:
                rows = [row for one in among for row in utterances(one, self._discount)]
            _require(rows)
            return [rows[place] for place in chance.integers(0, len(rows), number)]
        whole_text = [one for one in (self._kept if among is None else among) if one.turns]
        _require(whole_text)
        drawn: list[Utterance] = []
        while len(drawn) < number:
            drawn += utterances(whole_text[chance.integers(0, len(whole_text))], self._discount)
        return drawn


def _require(rows: Sequence[object]) -> None:
    if not rows:
        raise ValueError("nothing was played yet")


def utterances(played: Episode, discount: float) -> Iterator[Utterance]:
    """Of an episode, in its order."""
    worth = to_go([turn.reward for turn in played.turns], discount)
    followers = [*(turn.state for turn in played.turns[1:]), played.state_after]
    for number, turn in enumerate(played.turns):
        yield Utterance(
            state=turn.state,
            reply=whole_text(turn.reply),
            reward=turn.reward,
            following=followers[number],
            to_go=worth[number],
        )


def key_of(seed: int, purpose: Purpose, iteration: int, *places: int) -> int:
    """63 bits that are the same for the same names and as good as independent for others."""
    name = "/".join(map(str, (seed, purpose, iteration, *places)))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


TOKENS = "turn_tokens"
"""Of a row: for each turn `kept` (so many tokens of the prompt before), `added` behind them,
`reply`, and whether that was `cut` at its limit."""
EARNED = "turn_rewards"
"""Of a row: what each turn earned; their sum is the episode's reward."""


def with_turns(row: Mapping[str, Any], said: Sequence[TurnTokens], kind: str) -> dict[str, Any]:
    """A row of trajectories with its turns. Raises ValueError where turns and tokens do not go
    together."""
    if len(said) != row["turns"]:
        raise ValueError(f"{row['id']}: {row['turns']} turns, and tokens of {len(said)}")
    return {**row, TOKENS: encode_turns(said), EARNED: turn_rewards(row, kind)}


def without_turns(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of trajectories again: of what is only looked at, nothing is learnt."""
    return {name: value for name, value in row.items() if name not in (TOKENS, EARNED)}


def encode_turns(said: Iterable[TurnTokens]) -> list[dict[str, Any]]:
    """The turns of an episode, each prompt by what it adds."""
    found: list[dict[str, Any]] = []
    before: tuple[int, ...] = ()
    for one in said:
        kept = _common(before, one.prompt)
        found.append({"kept": kept, "added": one.prompt[kept:], "reply": one.reply, "cut": one.cut})
        before = one.prompt
    return found


def decode_turns(turns: Iterable[Mapping[str, Any]]) -> list[TurnTokens]:
    """The turns again."""
    found: list[TurnTokens] = []
    before: tuple[int, ...] = ()
    for turn in turns:
        before = (*before[: turn["kept"]], *turn["added"])
        found.append(TurnTokens(before, tuple(turn["reply"]), turn["cut"]))
    return found


def turn_rewards(row: Mapping[str, Any], kind: str) -> list[float]:
    """What each turn of an episode earned, so that they sum to the episode's reward. Rewards of
    steps that only say how things stand (`latest`, `max`) count by what they change; one that
    comes at the end alone (`terminal`) is the last turn's."""
    steps: list[float] = row["rewards"]
    match kind:
        case "sum":
            earned = [float(step) for step in steps]
        case "terminal":
            earned = [0.0] * len(steps)
        case _:
            earned, stood = [], 0.0
            for step in steps:
                now = max(stood, step) if kind == "max" else step
                earned.append(now - stood)
                stood = now
    if earned:  # a reply that ends the episode may have cost more than its step
        earned[-1] += row["reward"] - sum(earned)
    return earned


def episode_of_row(row: Mapping[str, Any]) -> Episode:
    """The episode of a row."""
    said = decode_turns(row[TOKENS])
    texts = _states([one.prompt for one in said])
    turns = zip(texts, said, row[EARNED], strict=True)
    return Episode(
        tuple(EpisodeTurn(state, Text(one.reply), earned) for state, one, earned in turns)
    )


def _states(prompts: Sequence[tuple[int, ...]]) -> list[TextPrefix]:
    """States as prefixes of one text as far as they are: from the end on, each that the one after
    it goes on from is read with it."""
    found: list[TextPrefix] = []
    for prompt in reversed(prompts):
        text = found[-1].text if found else None
        if text is None or text.ids[: len(prompt)] != prompt:
            text = Text(prompt)
        found.append(TextPrefix(text, len(prompt)))
    return found[::-1]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(place for place in range(length) if one[place] != other[place])


Row: TypeAlias = Mapping[str, Any]
RewardKind: TypeAlias = Literal["sum", "terminal", "latest", "max"]
_CLOSE = 1e-6


@dataclass(slots=True)
class Recording:
    """The rows that are learnt from, and how many episodes were not: those that ended in an error,
    those whose policy had forgotten turns (which of them it saw at which turn is not recorded), and
    those without a reply, or with one of no token."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    errors_left_out: int = 0
    forgotten_left_out: int = 0
    wordless_left_out: int = 0


def tokenise_episodes(
    rows: Sequence[Row], encoder: Encoder, kind: RewardKind, context: int
) -> Recording:
    """The turns of all rows, in their order. `kind` says how rewards of steps make an episode's.
    Raises FatalError where they do not make it so, for a turn that is longer than the model's
    `context`, and where no episode is left; FormatError for what the chat format cannot express."""
    found = Recording()
    for row in rows:
        if row["end"] == "error":
            found.errors_left_out += 1
        elif row.get("forgotten"):
            found.forgotten_left_out += 1
        else:
            said = _turn_tokens(row, encoder)
            if not said or not all(one.reply for one in said):
                found.wordless_left_out += 1
                continue
            _check(row, said, kind, context)
            found.rows.append(with_turns(row, said, kind))
    if not found.rows:
        raise FatalError(
            f"no episode to learn from: of {len(rows)}, {found.errors_left_out} ended in an "
            f"infrastructure error, {found.forgotten_left_out} had turns that their policy no "
            f"longer saw, and {found.wordless_left_out} hold no reply, or an empty one"
        )
    return found


def _turn_tokens(row: Row, encoder: Encoder) -> list[TurnTokens]:
    """Prompt and reply of each turn, in tokens."""
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


def _check(row: Row, said: Sequence[TurnTokens], kind: RewardKind, context: int) -> None:
    longest = max(len(one.prompt) + len(one.reply) for one in said)
    if longest > context:
        raise FatalError(
            f"a turn of episode {row['id']} has {longest} tokens with its prompt, and the model "
            f"reads {context}; take a model with a longer context, or shorter episodes"
        )
    rewards = row["rewards"]
    # A reply without an action may have cost what no step says.
    if row["invalid"] or not rewards:
        return
    whole = {"sum": math.fsum(rewards), "max": max(rewards)}.get(kind, rewards[-1])
    if not math.isclose(whole, row["reward"], abs_tol=_CLOSE):
        raise FatalError(
            f"the reward of episode {row['id']} is {row['reward']:g}, and by `rewards: {kind}` its "
            f"turns make it {whole:g}; set `rewards` to what its environment does "
            "(sum, terminal, latest or max)"
        )
