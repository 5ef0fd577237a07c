"""Plays one episode: policy and environment in turns, until one of them or a limit ends it.

Knows neither HTTP nor files: `Policy` and `World` are what it needs from `connect.py`, and
`runner.py` decides which episodes run when.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from agentc_backends.rollout_react.parse import ActionSpace, ActionSpan, has_mark, parse_action
from agentc_backends.rollout_react.prompt import (
    EpisodePrompt,
    Message,
    observation_message,
    opening,
)
from agentc_backends.rollout_react.seeds import turn_seed

End: TypeAlias = Literal["success", "failure", "limit", "overflow", "error"]


class ContextOverflowError(Exception):
    """The prompt is longer than the server's context."""


class InfrastructureError(Exception):
    """A server did not answer as it should; says nothing about the agent. Worth another try.

    `record` is the episode up to there, where one was open."""

    record: EpisodeRecord | None = None


class FatalError(Exception):
    """Trying again cannot help: a request is refused, a task or a split does not exist."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A policy's answer; token counts as the server reports them."""

    text: str
    stop: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Step:
    """An environment's answer to an action."""

    observation: str
    reward: float
    done: bool


class Session(Protocol):
    """One open episode of an environment; `observation` is its first. `step_limit` is how many
    steps the environment allows in it, None where it counts none itself."""

    @property
    def observation(self) -> str: ...

    @property
    def step_limit(self) -> int | None: ...

    async def step(self, action: str) -> Step: ...


class World(Protocol):
    """Opens episodes of an environment, and closes them whatever happens."""

    def open(self, task_id: str, prompt_seed: int) -> AbstractAsyncContextManager[Session]: ...


class Policy(Protocol):
    """Answers a conversation."""

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRules:
    """What holds for every episode of a stage. `reward_kind` says how rewards of steps make the
    episode's: `terminal` and `latest` take the last one, `sum` adds, `max` keeps the largest."""

    prompt: EpisodePrompt
    split: str
    reward_range: tuple[float, float]
    reward_kind: Literal["terminal", "latest", "sum", "max"]
    success_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """How a policy's turns go: their limit, and what replies mean."""

    max_turns: int
    on_invalid: Literal["observe", "fail"]
    on_overflow: Literal["drop_oldest", "end", "error"]
    invalid_message: str
    invalid_reward: Literal["keep", "zero"]
    action_span: ActionSpan
    action_space: ActionSpace
    no_action: Literal["invalid", "whole_reply"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """An episode that is to be played; `position` is the task's place in the split."""

    position: int
    task_id: str
    number: int
    seed: int
    prompt_seed: int

    @property
    def id(self) -> str:
        return f"{self.task_id}#{self.number}"


class EpisodeRecord:
    """An episode while it is played; `row` gives its line of trajectories.jsonl."""

    def __init__(self, rules: EpisodeRules, attempt: Attempt, source: str) -> None:
        self._rules = rules
        self._attempt = attempt
        self._source = source
        low, high = rules.reward_range
        self.reward: float = min(max(0.0, low), high)
        self.messages: list[Message] = []
        self.prompt_length = 0
        self.rewards: list[float] = []
        self._best: float | None = None
        # Where `sum` counts from: so many rewards were lost to an invalid reply.
        self._lost = 0
        self._forgotten = 0
        self.turns = 0
        self.invalid = 0
        self.stops: dict[str, int] = {}
        self.prompt_tokens = 0
        self.completion_tokens = 0

    def open(self, task: str) -> None:
        """Start with the prompt's messages; `task` is the environment's first observation."""
        self.messages = opening(self._rules.prompt, task)
        self.prompt_length = len(self.messages)

    def add_reply(self, reply: Reply) -> None:
        message: Message = {"role": "assistant", "content": reply.text}
        if reply.stop == "length":
            # Training must not take the end of such a turn for something the policy wrote.
            message["cut"] = True
        self.messages.append(message)
        self.turns += 1
        self.stops[reply.stop] = self.stops.get(reply.stop, 0) + 1
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens

    def prompt(self) -> list[Message]:
        """What the policy is shown: all messages but the forgotten ones."""
        after = self.prompt_length + 1
        return self.messages[:after] + self.messages[after + 2 * self._forgotten :]

    def forget(self) -> bool:
        """Leave the oldest observation and the reply after it out of the prompt, as Agent-R's code
        does; the first reply stays. False when nothing is left to forget."""
        if self.turns - self._forgotten < 2:
            return False
        self._forgotten += 1
        return True

    def add_reward(self, reward: float) -> None:
        self.rewards.append(reward)
        self._best = reward if self._best is None else max(self._best, reward)
        match self._rules.reward_kind:
            case "sum":
                self.reward = sum(self.rewards[self._lost :])
            case "max":
                self.reward = self._best
            case _:
                self.reward = reward

    def add_invalid(self, turns: TurnRules) -> None:
        """A reply without an action: the reward so far stays, is lost, or falls to the lowest
        there is."""
        self.invalid += 1
        if turns.on_invalid == "fail":
            self.reward = self._rules.reward_range[0]
        elif turns.invalid_reward == "zero":
            low, high = self._rules.reward_range
            self.reward = self._best = min(max(0.0, low), high)
            self._lost = len(self.rewards)
        self.rewards.append(0.0 if self._rules.reward_kind == "sum" else self.reward)

    def row(self, end: End, error: str | None = None) -> dict[str, Any]:
        """The record with its end: `messages` stops at the agent's last reply, and what the
        environment said to that one stands in `last_observation`."""
        if not self.messages:
            # The environment never opened the task; a conversation needs its prompt all the same.
            self.open("")
        messages, last = list(self.messages), None
        if len(messages) > max(self.prompt_length, 1) and messages[-1]["role"] == "user":
            last = messages.pop()["content"]
        attempt, failed = self._attempt, end == "error"
        return {
            "id": attempt.id,
            "task_id": attempt.task_id,
            "attempt": attempt.number,
            "seed": attempt.seed,
            "prompt_seed": attempt.prompt_seed,
            "split": self._rules.split,
            "messages": messages,
            "prompt_length": self.prompt_length,
            "last_observation": last,
            "reward": None if failed else self.reward,
            "success": not failed and self.reward >= self._rules.success_at,
            "end": end,
            "error": error,
            "turns": self.turns,
            "invalid": self.invalid,
            "rewards": self.rewards,
            "tokens": {"prompt": self.prompt_tokens, "completion": self.completion_tokens},
            "stops": dict(sorted(self.stops.items())),
            "source": self._source,
            **({"forgotten": self._forgotten} if self._forgotten else {}),
        }


async def play(
    rules: EpisodeRules, turns: TurnRules, attempt: Attempt, policy: Policy, world: World
) -> dict[str, Any]:
    """Play one episode and give its row.

    Raises InfrastructureError when a server fails, and ContextOverflowError when a prompt is too
    long and `on_overflow` is `error`.
    """
    record = EpisodeRecord(rules, attempt, "policy")
    try:
        async with world.open(attempt.task_id, attempt.prompt_seed) as session:
            record.open(session.observation)
            end = await _take_turns(rules, turns, attempt, policy, session, record)
    except InfrastructureError as error:
        error.record = record
        raise
    return record.row(end)


async def _take_turns(
    rules: EpisodeRules,
    turns: TurnRules,
    attempt: Attempt,
    policy: Policy,
    session: Session,
    record: EpisodeRecord,
) -> End:
    prefix = rules.prompt.observation_prefix
    # The environment counts actions; a reply without one counts here alone.
    limit = min(turns.max_turns, session.step_limit or turns.max_turns)
    for turn in range(limit):
        reply = await _reply(turns, record, policy, turn_seed(attempt.seed, turn), attempt.id)
        if reply is None:
            return "overflow"
        record.add_reply(reply)
        action = _action(rules, turns, reply.text)
        if action is None:
            record.add_invalid(turns)
            if turns.on_invalid == "fail":
                return "failure"
            record.messages.append(observation_message(prefix, turns.invalid_message))
            continue
        step = await session.step(action)
        record.add_reward(step.reward)
        record.messages.append(observation_message(prefix, step.observation))
        if step.done:
            return "success" if record.reward >= rules.success_at else "failure"
    return "limit"


async def _reply(
    turns: TurnRules, record: EpisodeRecord, policy: Policy, seed: int, affinity: str
) -> Reply | None:
    """The policy's reply; None when the prompt is too long and that ends the episode."""
    while True:
        try:
            return await policy.reply(record.prompt(), seed, affinity)
        except ContextOverflowError:
            if turns.on_overflow == "error":
                raise
            if turns.on_overflow == "end" or not record.forget():
                return None


def _action(rules: EpisodeRules, turns: TurnRules, reply: str) -> str | None:
    """The action of a reply; None when it is invalid. Without a mark the whole reply may be one,
    and then an empty action is one too, as in Agent-R's evaluation."""
    action = parse_action(
        reply, rules.prompt.reply_format, span=turns.action_span, space=turns.action_space
    )
    if action is None and turns.no_action == "whole_reply":
        return "" if has_mark(reply) else reply.strip()
    return action
