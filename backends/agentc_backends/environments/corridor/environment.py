"""The corridor as an environment: gymnasium's reset and step, plus tasks, expert and snapshots.

A task fixes the chance of its episodes, together with their seed. Sessions of an
`environments.server` each own one environment.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agentc_backends.environments.corridor.rules import (
    ACTIONS,
    GAMBLE,
    ROOMS,
    actions_of,
    goes_on,
    outcome,
    wins,
)
from agentc_backends.environments.corridor.settings import (
    SPLITS,
    SUCCESS_AT,
    CorridorSettings,
    load_tasks,
    reward_range,
)
from agentc_backends.environments.server.environment import EpisodeError
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.world import ExpertAction

_OVER = "The episode is over."


def refusal(actions: Sequence[str]) -> str:
    """What a reply that is no action is told, before the room that it stays in."""
    return f"That is none of the actions {', '.join(actions[:-1])} and {actions[-1]}."


class CorridorEnvironment:
    """One episode at a time; build it once and reset it for each attempt."""

    name: ClassVar[str] = "corridor"
    title: ClassVar[str] = "Corridor"
    version: ClassVar[str] = "1"
    reward_kind: ClassVar[str] = "sum"
    success_threshold: ClassVar[float] = SUCCESS_AT
    splits: ClassVar[tuple[str, ...]] = SPLITS
    capabilities: ClassVar[frozenset[str]] = frozenset({"expert", "fork", "snapshot", "seed"})
    blocking: ClassVar[bool] = False
    resets_on_create: ClassVar[bool] = False
    reported: ClassVar[tuple[str, ...]] = ("step_limit",)

    def __init__(self, settings: CorridorSettings | None = None) -> None:
        self.settings = settings or CorridorSettings()
        self.reward_range = reward_range(self.settings.max_steps, self.settings.gamble)
        self.default_max_steps = self.settings.max_steps
        self._actions = actions_of(self.settings.gamble)
        self._tasks = load_tasks(self.settings.tasks)
        self._task: str | None = None
        self._seed = self._room = self._steps = 0
        self._done = False

    def tasks(self, split: str) -> Sequence[str]:
        if split not in self._tasks.splits:
            raise KeyError(f"{self.title} has no split {split!r}; it has {', '.join(SPLITS)}")
        return self._tasks.splits[split]

    def has_task(self, task_id: str) -> bool:
        return task_id in self._tasks.known

    def numbered_tasks(self) -> Sequence[str]:
        """Those of the first split, then those of the next one."""
        return tuple(task for tasks in self._tasks.splits.values() for task in tasks)

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start in the first room; task and seed decide when `right` leads on."""
        self._task, self._seed = self._checked(task_id), seed
        self._room, self._steps, self._done = 0, 0, False
        return ROOMS[self._room], {"step_limit": self.settings.max_steps}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out one action: observation, reward, terminated, truncated (never), info.

        The last step that is left does not end the episode, for in the corridor nothing ends then:
        whoever plays stops there by `step_limit`, so that a learner can tell a cut from an end. A
        step beyond it is refused, and only then it is over.
        """
        task = self._episode()
        if self._done or self._steps >= self.settings.max_steps:
            self._done = True
            return _OVER, 0.0, True, False, {}
        said = action.strip().lower()
        this = (task, self._seed, self._steps)
        won = wins(*this) if self.settings.gamble else None
        after = outcome(self._room, said, goes_on=goes_on(*this), wins=won)
        self._steps += 1
        if after.room is None:
            self._done = True
        else:
            self._room = after.room
        seen = after.seen if said in self._actions else f"{refusal(self._actions)}\n{after.seen}"
        return seen, after.reward, self._done, False, {}

    def expert_steps(self, task_id: str, *, seed: int = 0) -> tuple[ExpertAction, ...]:
        """The actions that lead out of the gate by the shortest way that chance leaves, or what an
        expert of less skill does instead."""
        of = self.settings
        return plan(self._checked(task_id), seed, of.max_steps, of.expert_skill, of.expert_gambles)

    def snapshot(self) -> dict[str, Any]:
        """The whole episode as JSON values."""
        return {
            "environment": self.name,
            "version": 1,
            "task_id": self._episode(),
            "seed": self._seed,
            "room": self._room,
            "steps": self._steps,
            "done": self._done,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        match snapshot:
            case {
                "environment": self.name,
                "version": 1,
                "task_id": str(task_id),
                "seed": int(seed),
                "room": int(room),
                "steps": int(steps),
                "done": bool(done),
            } if self.has_task(task_id) and self._is_state(room, steps):
                self._task, self._seed = task_id, seed
                self._room, self._steps, self._done = room, steps, done
            case _:
                raise ValueError(f"not a snapshot of a {self.title} episode with these options")

    def identity(self) -> dict[str, Any]:
        """Everything that decides tasks, chance, texts and rewards, as JSON values."""
        options = rules_of(self.settings)
        return {"name": self.name, "version": self.version, "options": options}

    def close(self) -> None:
        """An episode holds memory only."""

    def _is_state(self, room: int, steps: int) -> bool:
        return 0 <= room < len(ROOMS) and 0 <= steps <= self.settings.max_steps

    def _checked(self, task_id: str) -> str:
        if not self.has_task(task_id):
            raise KeyError(f"{self.title} has no task {task_id!r} with these options")
        return task_id

    def _episode(self) -> str:
        if self._task is None:
            raise EpisodeError("reset the environment before using it")
        return self._task


# MERGED agentc_backends.environments.corridor.environment
# The expert: always right, which is optimal in every room (`exact.optimal_values`), or as often as
# its skill says; and a gambler, where there is a gamble.
#
# How often it has to be said is known beforehand, since chance is a function (`rules.goes_on`).

THOUGHT = "The way out is at the right end."
_ASIDE = "I try something else."
_LUCK = "I try my luck."


def plan(
    task_id: str, seed: int, max_steps: int, skill: float = 1.0, gambles: float = 0.0
) -> tuple[ExpertAction, ...]:
    """What is said until the episode is over, or `max_steps` times where that is not enough. With
    probability `gambles` a step is a gamble; of the others `skill` is the share that knows."""
    chance = random.Random(f"{seed} {task_id}")
    room: int | None = 0
    steps: list[ExpertAction] = []
    while room is not None and len(steps) < max_steps:
        if gambles and chance.random() < gambles:
            said = ExpertAction(GAMBLE, _LUCK)
        elif skill >= 1 or chance.random() < skill:
            said = ExpertAction("right", THOUGHT)
        else:
            said = ExpertAction(chance.choice(ACTIONS), _ASIDE)
        this = (task_id, seed, len(steps))
        room = outcome(room, said.action, goes_on=goes_on(*this), wins=wins(*this)).room
        steps.append(said)
    return tuple(steps)
