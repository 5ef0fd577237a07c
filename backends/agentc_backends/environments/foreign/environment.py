"""What an environment of somebody else is, as far as a spec declares it: numbered tasks, rewards,
turns. It runs beside the server. Neighbours: `task_lists.py`, `score.py`, whose rules these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from agentc_backends.environments.foreign.score import reward_rule, success_of
from agentc_backends.environments.foreign.task_lists import task_id, task_numbers


class DeclaredSettings(Protocol):
    """The settings that every such environment has."""

    @property
    def splits(self) -> Mapping[str, Any]: ...
    @property
    def reward(self) -> Mapping[str, Any]: ...
    @property
    def max_turns(self) -> int: ...


class ForeignEnvironment:
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
