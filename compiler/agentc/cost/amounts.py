"""What a workload is counted in: rows of artifacts, guesses that the past corrects, and sizes of
conversations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agentc.backend_api import ExpectedExpert
from agentc.cost.parameters import ModelShape, shape_of_count
from agentc.cost.past import Traits
from agentc.cost.quantities import ZERO, Quantity, prior, total, value
from agentc.cost.subject import JobProfile
from agentc.kinds.table import ACTING, PAIR_TRAINERS, SERVED, TRAINERS

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


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a guess, and how many like jobs that is based on."""

    quantity: Quantity
    like: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    """`rows` are worked through (data, episodes, inputs); `turns` and `replied` are replies and
    their tokens over all episodes, `context` the tokens before a reply on average; `tokens` go
    through a model in all, each pass counted; `disk` is bytes of the artifact. `asked` are tokens
    through the model that the environment asks, of which it writes `asked_replied`, each reply
    behind `asked_context`. `like` counts the finished jobs that corrected some of these amounts."""

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
    simulator_model: ModelShape | None = None
    model: ModelShape | None = None
    output: Rows | ModelShape | None = None
    like: int = 0


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


def turns_in_prompt(subject: JobProfile, turns: Quantity) -> float:
    """Turns that a prompt holds on average, before the one that it waits for."""
    prompt = subject.config.get("prompt")
    if isinstance(prompt, Mapping) and prompt.get("memory") == "last":
        return 0.0
    return max(0.0, (turns.median - 1) / 2)


def expected_talk(stated: ExpectedExpert | None) -> Talk:
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


# What the models that environments ask have to do: a human's reply for each turn of an agent.


def with_simulator(guesses: Guesses, subject: JobProfile, work: Workload) -> Workload:
    """The workload with that of the model that the job's environment asks; itself where it asks
    none. Each turn is answered by one reply, behind a prompt of its own and the dialogue so far."""
    role = subject.asking
    if role is None or subject.kind not in ACTING:
        return work
    reply = prior("asked_reply")
    replied = work.turns.times(reply)
    read = total([prior("asked_prompt"), work.context])
    return replace(
        work,
        asked=work.turns.times(total([read, reply])),
        asked_replied=replied,
        asked_context=read,
        simulator_model=guesses.model_of(subject, role),
    )


# What the store has measured of finished jobs, in the place of what was forecast of them.

_REPLIES = "(replies)"
"""Stands for the fact by which a kind counts its replies."""
_RATIOS = {
    "turns": ("turns", "episodes"),
    "expert_turns": ("turns", "episodes"),
    "reply": ("completion_tokens", _REPLIES),
    "context": ("prompt_tokens", _REPLIES),
    "row_tokens": ("tokens", "rows"),
    "kept_draws": ("pairs", "drawn"),
    "scored": ("scored_tokens", _REPLIES),
    "tree_replies": ("samples", "trees"),
    "tree_leaves": ("leaves", "trees"),
    "revised": ("rows", "trees"),
    "judged": ("judgements", "trees"),
    "judge_reply": ("judge_completion_tokens", "judgements"),
    "judge_context": ("judge_prompt_tokens", "judgements"),
}
"""Which facts of a manifest, one over the other, tell what became of a guess."""


def measured_fact(name: str, subject: JobProfile) -> float | None:
    """What became of a guess, by the facts of a finished job; None for a job to come, or where it
    was not measured."""
    if name not in _RATIOS:
        return None
    facts = subject.measured.get("facts") or {}
    over, under = _RATIOS[name]
    above = facts.get(over)
    below = facts.get(subject.counts.replies if under == _REPLIES else under)
    if not isinstance(above, (int, float)) or not isinstance(below, (int, float)):
        return None
    if name in ("reply", "context") and subject.counts.replies == "turns":
        below *= candidates_of(subject)
    return above / below if above > 0 and below > 0 else None


def measured(subject: JobProfile, forecast: Workload) -> Workload:
    """A forecast with everything replaced that the job's manifest measured."""
    facts = _Facts(subject.measured.get("facts") or {})
    work, output = forecast, forecast.output
    if isinstance(output, ModelShape):
        count = facts.number("parameters") or _by_bytes(output, facts.values)
        if count:
            output = _measured_shape(output, count)
            work = replace(work, model=output)
    elif isinstance(output, Rows):
        output = _measured_rows(output, subject, facts)
    work = _measured_episodes(work, subject, facts)
    if subject.setting("lr") is not None:
        work = _measured_training(work, subject, facts)
    return replace(work, output=output)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a manifest measured."""

    values: Mapping[str, Any]

    def number(self, name: str) -> float | None:
        """A fact that is a number from 0."""
        fact = self.values.get(name)
        return float(fact) if isinstance(fact, (int, float)) and fact >= 0 else None


def _measured_shape(shape: ModelShape, count: float) -> ModelShape:
    """A model of so many parameters: of the usual shape where the forecast's is a guess."""
    certain = shape.parameters.spread < 0.1
    base = shape if certain else shape_of_count(Quantity(count))
    return replace(base, parameters=Quantity(count), trained=shape.trained, known=True)


def _measured_rows(rows: Rows, subject: JobProfile, facts: _Facts) -> Rows:
    made = facts.number(subject.counts.made)
    if made:
        rows = replace(rows, count=Quantity(made))
    episodes = facts.number("episodes") or facts.number("pairs")
    if episodes and subject.counts.made == "episodes":
        rows = replace(rows, count=Quantity(episodes))
        turns = facts.number(subject.counts.replies)
        if turns and facts.number("episodes"):
            rows = replace(rows, turns=Quantity(turns / episodes))
    return rows


def _measured_episodes(work: Workload, subject: JobProfile, facts: _Facts) -> Workload:
    """The episodes, their replies, and the tokens of these."""
    episodes, turns = facts.number("episodes"), facts.number(subject.counts.replies)
    if episodes:
        work = replace(work, rows=Quantity(episodes))
    if turns:
        work = replace(work, turns=Quantity(turns))
        of = subject.counts.tokens
        replied = facts.number(f"{of}completion_tokens")
        read = facts.number(f"{of}prompt_tokens")
        if replied is not None and read is not None:
            scored = facts.number("scored_tokens") or 0.0
            work = replace(
                work,
                replied=Quantity(replied),
                context=Quantity(read / (turns * candidates_of(subject))),
                tokens=Quantity(replied + read + scored),
            )
    return work


def _measured_training(work: Workload, subject: JobProfile, facts: _Facts) -> Workload:
    """The rows of the data, their tokens, and the steps over them."""
    rows, tokens, steps = map(facts.number, ("rows", "tokens", "steps"))
    if not rows or not tokens:
        return work
    batch = subject.number("global_batch", 32)
    bounded = isinstance(subject.setting("max_steps"), int)
    passed = (steps or 0) * batch if bounded else rows * subject.number("epochs", 1)
    return replace(
        work,
        rows=Quantity(rows),
        context=Quantity(tokens / rows),
        tokens=Quantity(passed * tokens / rows),
        steps=Quantity(steps or max(1.0, passed / batch)),
    )


def _by_bytes(output: object, facts: Mapping[str, Any]) -> float | None:
    """The weights of a model by the bytes of their files, in 16 bits, where its size was not known
    otherwise."""
    size = facts.get("weight_bytes")
    unknown = isinstance(output, ModelShape) and not output.known
    return size / 2 if unknown and isinstance(size, (int, float)) and size > 0 else None


def tokens_of(subject: JobProfile) -> float | None:
    """Tokens that a finished job moved through a model, or None where that was not measured."""
    if subject.kind not in (*TRAINERS, *SERVED):
        return None
    work = measured(subject, Workload())
    return work.tokens.median or None
