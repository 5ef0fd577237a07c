"""What adapters of third-party environments share: members that a spec declares, and the reward of
an episode from the rewards of its steps.

Each step carries the score of the episode so far (`reward_kind: latest`), within the declared
range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, get_args

from agentc_backends.environments.external.task_lists import task_id, task_numbers


class DeclaredSettings(Protocol):
    """The settings that every such environment has."""

    @property
    def splits(self) -> Mapping[str, Any]: ...
    @property
    def reward(self) -> Mapping[str, Any]: ...
    @property
    def max_turns(self) -> int: ...


class ExternalEnvironment:
    """One episode at a time. `prefix` begins the names of tasks; `numbers` are those of all of
    them, by name."""

    reward_kind: ClassVar[str] = "latest"
    capabilities: ClassVar[frozenset[str]] = frozenset()
    blocking: ClassVar[bool] = True
    resets_on_create: ClassVar[bool] = False

    def __init__(self, declared: DeclaredSettings, prefix: str, numbers: Mapping[str, int]) -> None:
        self._declared = declared
        self._prefix = prefix
        self._numbers = numbers
        self._rule = reward_rule(declared.reward)

    @property
    def reward_range(self) -> tuple[float, float]:
        low, high = self._rule.bounds
        return low * self._rule.scale, high * self._rule.scale

    @property
    def success_threshold(self) -> float:
        return success_of(self._declared.reward)

    @property
    def default_max_steps(self) -> int:
        return self._declared.max_turns

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._declared.splits)

    def tasks(self, split: str) -> tuple[str, ...]:
        return tuple(task_numbers(self._prefix, {split: self._declared.splits[split]}))

    def has_task(self, task_id: str) -> bool:
        return task_id in self._numbers

    def numbered_tasks(self) -> Sequence[str]:
        last = max(self._numbers.values())
        return [task_id(self._prefix, number) for number in range(min(last, 99_999) + 1)]


class NotAnActionError(Exception):
    """The text is no action; the message tells the agent what would be one."""


RewardKind: TypeAlias = Literal["latest", "sum", "max"]
REWARD_KINDS: tuple[RewardKind, ...] = get_args(RewardKind)

_SLACK = 1e-6


class RewardError(Exception):
    """A reward that the declaration does not allow: it is wrong, or means something else."""


class RangeError(ValueError):
    """No range of rewards: the message says what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRule:
    """How rewards of steps make the episode's: the `latest` counts, their `sum`, or their `max`.
    `bounds` are those of the episode's reward in the environment's own units, and `scale` turns it
    into agentc's; `whose` names in messages what declares them."""

    kind: RewardKind
    bounds: tuple[float, float]
    scale: float = 1.0
    whose: str = "the environment"


class RunningScore:
    """The running reward of one episode."""

    __slots__ = ("_best", "_rule", "_sum")

    def __init__(self, rule: RewardRule) -> None:
        self._rule = rule
        self._sum = 0.0
        self._best: float | None = None

    def after(self, reward: float) -> float:
        """The episode's reward after a step of this raw reward.

        Raises RewardError when it leaves the declared range: a learner would else be trained on
        numbers that mean something else.
        """
        rule = self._rule
        self._sum += reward
        self._best = reward if self._best is None else max(self._best, reward)
        found = {"latest": reward, "sum": self._sum, "max": self._best}[rule.kind]
        low, high = rule.bounds
        if not low - _SLACK <= found <= high + _SLACK:
            raise RewardError(
                f"the episode's reward is {found:g}, but {rule.whose} says {low:g} to {high:g} "
                f"(kind: {rule.kind})"
            )
        return min(max(found, low), high) * rule.scale


def reward_bounds(value: Any) -> tuple[float, float]:
    """`[lowest, highest]` as a spec writes it. Raises RangeError."""
    match value:
        case [int() | float() as low, int() | float() as high] if -math.inf < low < high < math.inf:
            return float(low), float(high)
    raise RangeError(f"`reward_range` is {value!r}; expected [lowest, highest]")


REWARD: Mapping[str, Any] = {
    "kind": "sum",
    "lowest": 0.0,
    "highest": 1.0,
    "scale": 1.0,
    "success_at": None,
}
"""What a spec's `reward` says where it says nothing; `fields.py` declares the keys."""


def reward_rule(reward: Mapping[str, Any]) -> RewardRule:
    """The rule of a checked `reward`."""
    told = {**REWARD, **reward}
    return RewardRule(
        kind=told["kind"],
        bounds=(float(told["lowest"]), float(told["highest"])),
        scale=float(told["scale"]),
        whose="this entry's `reward`",
    )


def success_of(reward: Mapping[str, Any]) -> float:
    """The least reward, in agentc's units, of an episode that is a success."""
    told = {**REWARD, **reward}
    at = told["success_at"]
    return float(told["highest"]) * float(told["scale"]) if at is None else float(at)
