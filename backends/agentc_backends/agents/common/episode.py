"""One episode: who takes part in it, what holds for all of a stage, its record, and which episodes
a stage consists of.

Knows neither HTTP nor files: `connect.py` gives a `Policy` and an `EpisodeSource`. Rollouts play
turn by turn, experts by their plan; searches and revisions use parts of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from agentc.program.job import JobConfig
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prefixes import Prefix
from agentc_backends.agents.common.prompts import (
    EpisodePrompt,
    Message,
    agent_message,
    opening_messages,
    read_prompt,
)
from agentc_backends.agents.common.seeds import episode_seed, prefix_seed
from agentc_backends.agents.common.settings import PlannedEpisodes

End: TypeAlias = Literal["success", "failure", "limit", "overflow", "error"]


@dataclass(frozen=True, slots=True)
class ReplyChoice:
    """How a reply was chosen among candidates: its number (from 0), that of `distinct` ones, and
    each candidate's advantage, or None where they were all alike and none was asked for. `scored`
    tokens went through the models that were asked."""

    taken: int
    distinct: int
    advantages: tuple[float, ...] | None
    scored: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A policy's answer; token counts as the server reports them. `tokens` are the ids of what was
    generated, its end included, and `logprobs` their natural-log probabilities before temperature
    and top_p, where they were asked for. Of one that was chosen counts are of all candidates."""

    text: str
    stop: str
    prompt_tokens: int
    completion_tokens: int
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    choice: ReplyChoice | None = None
    stopped_by: str | None = None
    """The stop text that ended it, whose tokens are the last ones then."""
    cut_by_context: bool = False
    """The context was full before the reply had its `max_tokens`."""


def is_cut_by_context(stop: str, completion_tokens: int, max_tokens: int) -> bool:
    """Whether a reply ended where the context did, with tokens of its limit left."""
    return stop == "length" and 0 < completion_tokens < max_tokens


@dataclass(frozen=True, slots=True)
class Step:
    """An environment's answer to an action. `report` is what it says of the episode for the record,
    which the agent does not see; None where it says nothing."""

    observation: str
    reward: float
    done: bool
    report: Mapping[str, Any] | None = None


class EpisodeSession(Protocol):
    """One open episode of an environment; `observation` is its first. `step_limit` is how many
    steps the environment allows in it, None where it counts none itself."""

    @property
    def observation(self) -> str: ...

    @property
    def step_limit(self) -> int | None: ...

    async def step(self, action: str) -> Step: ...


class EpisodeSource(Protocol):
    """Opens episodes of an environment, and closes them whatever happens."""

    def open(
        self, task_id: str, prompt_seed: int
    ) -> AbstractAsyncContextManager[EpisodeSession]: ...


class Policy(Protocol):
    """Answers a conversation."""

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply: ...


class TokenPolicy(Protocol):
    """Answers a conversation, with the tokens of the answer and their log-probabilities."""

    async def reply_with_tokens(
        self, messages: Sequence[Message], seed: int, affinity: str
    ) -> Reply: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRules:
    """What holds for every episode of a stage. `reward_kind` says how rewards of steps make the
    episode's: `terminal` and `latest` take the last one, `sum` adds, `max` keeps the largest."""

    prompt: EpisodePrompt
    split: str
    reward_range: tuple[float, float]
    reward_kind: Literal["terminal", "latest", "sum", "max"]
    success_at: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """An episode that is to be played; `position` is the task's place in the split, and `prefix`
    what it begins with, where that is not the policy's."""

    position: int
    task_id: str
    number: int
    seed: int
    prompt_seed: int
    prefix: Prefix | None = None

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
        self._cut_by_context = 0
        self.turns = 0
        self.invalid = 0
        self.stops: dict[str, int] = {}
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self._choices: list[ReplyChoice] = []
        self._report: Mapping[str, Any] | None = None

    def open(self, task: str) -> None:
        """Start with the prompt's messages; `task` is the environment's first observation."""
        self.messages = opening_messages(self._rules.prompt, task)
        self.prompt_length = len(self.messages)

    def add_reply(self, reply: Reply) -> None:
        message = agent_message(self._rules.prompt, reply.text)
        if reply.stop == "length":
            # Training must not take the end of such a turn for something the policy wrote.
            message["cut"] = True
        self.messages.append(message)
        self.turns += 1
        self._cut_by_context += reply.cut_by_context
        self.stops[reply.stop] = self.stops.get(reply.stop, 0) + 1
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        if reply.choice is not None:
            self._choices.append(reply.choice)

    def add_prefix_reply(self, text: str, *, cut: bool, raw: str | None) -> None:
        """A reply of the prefix: a turn of the episode, but none of its policy's, and marked so
        that training on marked replies leaves it out."""
        marks: Message = {**({} if raw is None else {"raw": raw}), **({"cut": True} if cut else {})}
        self.messages.append({"role": "assistant", "content": text, "loss": False, **marks})
        self.turns += 1

    def prompt(self) -> list[Message]:
        """What the policy is shown: all messages but the forgotten ones, or the newest observation
        in the task's place where the prompt's memory is the `last`."""
        if self._rules.prompt.memory == "last":
            return [*self.messages[: self.prompt_length - 1], self.messages[-1]]
        after = self.prompt_length + 1
        return self.messages[:after] + self.messages[after + 2 * self._forgotten :]

    def forget(self) -> bool:
        """Leave the oldest observation and the reply after it out of the prompt, as Agent-R's code
        does; the first reply stays. False when nothing is left to forget."""
        if self.turns - self._forgotten < 2:
            return False
        self._forgotten += 1
        return True

    def add_step(self, step: Step) -> None:
        """The reward of a step, and what the environment reports with it."""
        reward, self._report = step.reward, step.report
        self.rewards.append(reward)
        self._best = reward if self._best is None else max(self._best, reward)
        match self._rules.reward_kind:
            case "sum":
                self.reward = sum(self.rewards[self._lost :])
            case "max":
                self.reward = self._best
            case _:
                self.reward = reward

    def add_invalid(self, reward: Literal["keep", "zero", "lowest"]) -> None:
        """A reply without an action, and what becomes of the reward so far."""
        self.invalid += 1
        low, high = self._rules.reward_range
        if reward == "lowest":
            self.reward = low
        elif reward == "zero":
            self.reward = self._best = min(max(0.0, low), high)
            self._lost = len(self.rewards)
        self.rewards.append(0.0 if self._rules.reward_kind == "sum" else self.reward)

    def row(self, end: End, error: str | None = None) -> dict[str, Any]:
        """The record with its end: `messages` stops at the agent's last reply, and what the
        environment said to that one stands in `last_observation`. `turns` and `rewards` are of the
        whole episode, `invalid`, `tokens` and `stops` of what the policy replied."""
        if not self.messages:
            # The environment never opened the task; a conversation needs its prompt all the same.
            self.open("")
        messages, last = list(self.messages), None
        if len(messages) > max(self.prompt_length, 1) and messages[-1]["role"] != "assistant":
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
            "tokens": self._tokens(),
            "stops": dict(sorted(self.stops.items())),
            "source": self._source,
            **({"choices": list(map(_recorded, self._choices))} if self._choices else {}),
            **({} if self._report is None else {"report": dict(self._report)}),
            **({"forgotten": self._forgotten} if self._forgotten else {}),
            **({"cut_by_context": self._cut_by_context} if self._cut_by_context else {}),
            **({} if self._rules.prompt.memory == "all" else {"memory": self._rules.prompt.memory}),
            **({} if attempt.prefix is None else {"origin": attempt.prefix.origin()}),
        }

    def _tokens(self) -> dict[str, int]:
        scored = sum(choice.scored for choice in self._choices)
        tokens = {"prompt": self.prompt_tokens, "completion": self.completion_tokens}
        return {**tokens, "scored": scored} if self._choices else tokens


def _recorded(choice: ReplyChoice) -> dict[str, Any]:
    advantages = None if choice.advantages is None else list(choice.advantages)
    return {"taken": choice.taken, "distinct": choice.distinct, "advantages": advantages}


_REWARD_KINDS = ("terminal", "latest", "sum", "max")


def read_rules(config: JobConfig, meta: Mapping[str, Any]) -> EpisodeRules:
    """What holds for every episode. Raises FatalError."""
    reward_kind = meta.get("reward_kind", "terminal")
    if reward_kind not in _REWARD_KINDS:
        raise FatalError(
            f"the environment's reward_kind is {reward_kind!r}; known are "
            + ", ".join(_REWARD_KINDS)
        )
    low, high = config["reward_range"]
    return EpisodeRules(
        prompt=read_prompt(config["prompt"]),
        split=config["split"],
        reward_range=(low, high),
        reward_kind=reward_kind,
        success_at=config["success_at"],
    )


def split_tasks(meta: Mapping[str, Any], split: str, limit: int | None) -> Sequence[str]:
    """The first `limit` tasks of a split, in the environment's order. Raises FatalError when the
    environment has no such split, no task in it, or a task twice."""
    splits = meta["splits"]
    if split not in splits:
        raise FatalError(f"the environment has no split {split!r}; it has {', '.join(splits)}")
    tasks: Sequence[str] = splits[split][:limit]
    if not tasks:
        raise FatalError(f"the split {split!r} holds no task with these environment settings")
    if len(set(tasks)) < len(tasks):
        twice = next(task for task in tasks if tasks.count(task) > 1)
        raise FatalError(f"the split {split!r} names task {twice!r} twice")
    return tasks


def task_attempts(
    tasks: Sequence[str], attempts: int, *, seed: int, prompt_seed: int, prompt_per_attempt: bool
) -> list[Attempt]:
    """Every episode, ordered by (position of the task, attempt)."""
    return [
        Attempt(
            position=position,
            task_id=task_id,
            number=number,
            seed=episode_seed(seed, task_id, number),
            prompt_seed=prompt_seed + (number if prompt_per_attempt else 0),
        )
        for position, task_id in enumerate(tasks)
        for number in range(attempts)
    ]


def planned_attempts(tasks: Sequence[str], planned: PlannedEpisodes) -> list[Attempt]:
    """Every episode that a stage plays from its start."""
    return task_attempts(
        tasks,
        planned.attempts,
        seed=planned.seed,
        prompt_seed=planned.prompt_seed,
        prompt_per_attempt=planned.prompt_per_attempt,
    )


def prefix_attempts(
    prefixes: Sequence[Prefix], tasks: Sequence[str], attempts: int, *, seed: int
) -> list[Attempt]:
    """N episodes for each prefix, under the prompt that its source had. They are numbered
    within their task; what an episode draws depends on its prefix instead."""
    places = {task_id: place for place, task_id in enumerate(tasks)}
    numbers: Counter[str] = Counter()
    found: list[Attempt] = []
    for prefix in prefixes:
        source = prefix.source
        for attempt in range(attempts):
            found.append(
                Attempt(
                    position=places[source.task_id],
                    task_id=source.task_id,
                    number=numbers[source.task_id],
                    seed=prefix_seed(seed, source.input, source.id, prefix.length, attempt),
                    prompt_seed=source.prompt_seed,
                    prefix=prefix,
                )
            )
            numbers[source.task_id] += 1
    return found
