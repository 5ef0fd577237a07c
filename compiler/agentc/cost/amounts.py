"""What a workload is counted in: rows of artifacts, guesses that the past corrects, and sizes of
conversations. Neighbours: `workload.py`, `trees.py`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from agentc.backend_api import ExpectedExpert
from agentc.cost.parameters import ModelShape
from agentc.cost.past import Traits
from agentc.cost.priors import prior, value
from agentc.cost.quantity import ZERO, Quantity, total
from agentc.cost.subject import JobProfile
from agentc.kinds.groups import PAIR_TRAINERS

_LONGEST = 0.9
"""Of the step limit: the most turns that episodes have on average."""
CHOSEN_PASSES = 3
"""So many models a candidate goes through that a critic may choose: policy, critic, reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of an artifact: how many, replies and tokens of each; `label` is where they come from,
    for comparing with other data of the same kind. Of trees, `leaves` is how many each has, and
    replies and tokens are those of one leaf's trajectory."""

    count: Quantity
    turns: Quantity
    tokens: Quantity
    label: str
    leaves: Quantity = ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A quantity that the past can correct: its prior, and the traits to compare it by."""

    name: str
    backend: str
    prior: Quantity
    traits: Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """`rows` are worked through (data, episodes, inputs); `turns` and `replied` are replies and
    their tokens over all episodes, `context` the tokens before a reply on average; `tokens` go
    through a model in all, each pass counted; `disk` is bytes of the artifact. `asked` are tokens
    through the model that the environment asks, of which it writes `asked_replied`, each reply
    behind `asked_context`. `pieces` are the guesses that entered."""

    rows: Quantity = ZERO
    turns: Quantity = ZERO
    replied: Quantity = ZERO
    context: Quantity = ZERO
    tokens: Quantity = ZERO
    steps: Quantity = ZERO
    disk: Quantity = ZERO
    asked: Quantity = ZERO
    asked_replied: Quantity = ZERO
    asked_context: Quantity = ZERO
    asked_model: ModelShape | None = None
    model: ModelShape | None = None
    output: Rows | ModelShape | None = None
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Tokens of a task's own text, of an expert's reply and of an observation; turns of an expert's
    episode, None where nothing is stated."""

    prompt: Quantity
    reply: Quantity
    observation: Quantity
    turns: Quantity | None


class Guesses(Protocol):
    """What forecasts of a kind ask of the forecaster."""

    def settle(
        self, subject: JobProfile, name: str, backend: str, guess: Quantity, traits: Traits
    ) -> Quantity:
        """A guess of the prior, corrected by the past."""
        ...

    def tasks_of(self, subject: JobProfile) -> tuple[Quantity, str, float]:
        """Tasks of the split within `limit`, a label of the environment, its step limit."""
        ...

    def talk_of(self, subject: JobProfile) -> Talk:
        """What is said in its environment."""
        ...

    def rows_of(self, subject: JobProfile, role: str | None = None) -> list[Rows]:
        """Rows of the inputs of a role, or of all."""
        ...

    def model_of(self, subject: JobProfile, role: str) -> ModelShape | None:
        """The model of a role's input."""
        ...


def environment_of(subject: JobProfile) -> str:
    """The backend of the environment that it leases, or nothing."""
    server = subject.servers.get("environment")
    return "" if server is None else server.backend


def candidates_of(subject: JobProfile) -> float:
    """Replies that are drawn for each turn of an episode."""
    return subject.number("candidates", 1) if subject.forecast == "episodes" else 1.0


def split_of(subject: JobProfile) -> str:
    """The split whose tasks it takes, or nothing."""
    return str(subject.setting("split") or subject.config.get("split") or "")


def turns_expected(talk: Talk, limit: float) -> Quantity:
    """Turns of a policy's episode: about an expert's, for some end early and some never; where
    nothing is stated of that, a share of the limit."""
    share = prior("turn_share")
    if talk.turns is None:
        return share.times(limit)
    turns = talk.turns.times(value("policy_turns"))
    return Quantity(min(turns.median, _LONGEST * limit), turns.widened(share.spread).spread)


def turns_shown(subject: JobProfile, turns: Quantity) -> float:
    """Turns that a prompt holds on average, before the one that it waits for."""
    prompt = subject.config.get("prompt")
    if isinstance(prompt, Mapping) and prompt.get("memory") == "last":
        return 0.0
    return max(0.0, (turns.median - 1) / 2)


def talk_where(stated: ExpectedExpert | None) -> Talk:
    """What is said where an environment states this, or nothing."""
    if stated is None:
        reply, observation = prior("reply_tokens"), prior("observation_tokens")
        return Talk(prompt=prior("prompt_tokens"), reply=reply, observation=observation, turns=None)
    each = prior("characters_per_token")
    known = Quantity.between(1.0, stated.factor).widened(each.spread)
    prompt, reply, observation = (
        known.times(characters / each.median)
        for characters in (stated.prompt, stated.reply, stated.observation)
    )
    turns = Quantity.between(stated.turns, stated.factor)
    return Talk(prompt=prompt, reply=reply, observation=observation, turns=turns)


def first_prompt(subject: JobProfile, talk: Talk) -> Quantity:
    """Tokens before the first reply."""
    own = Quantity(subject.prompt_characters / value("characters_per_token"), 0.2)
    return total([own, talk.prompt])


def row_tokens(subject: JobProfile, talk: Talk, turns: Quantity, reply: Quantity) -> Quantity:
    """Tokens of a conversation of so many replies."""
    each = total([reply, talk.observation])
    return total([first_prompt(subject, talk), turns.times(each)])


def row_bytes(tokens: Quantity) -> Quantity:
    """Bytes of a row with a conversation of so many tokens."""
    return total([tokens.times(prior("characters_per_token")), prior("row_bytes")])


def longest_row(subject: JobProfile) -> float:
    """`max_length` bounds a row; both sides of a pair."""
    longest = subject.number("max_length", math.inf)
    return 2 * longest if subject.kind in PAIR_TRAINERS else longest
