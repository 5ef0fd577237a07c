"""The corridor as an environment, and its expert.

A task fixes the chance of its episodes, together with their seed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

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
    reward_range,
)
from agentc_backends.environments.server.world import ExpertAction, TaskLists, TextWorld

THOUGHT = "The way out is at the right end."
_ASIDE = "I try something else."
_LUCK = "I try my luck."


@lru_cache(maxsize=16)
def task_lists(count: int) -> TaskLists:
    """That many tasks for each split, named by split and number. They differ in their chance only
    (`rules.goes_on`), so splits share no task and no episode."""
    return TaskLists({name: tuple(f"{name}-{n}" for n in range(count)) for name in SPLITS})


def refusal(actions: Sequence[str]) -> str:
    """The answer to a reply that is no action, before the room that it stays in."""
    return f"That is none of the actions {', '.join(actions[:-1])} and {actions[-1]}."


class CorridorEnvironment(TextWorld):
    """One episode at a time; build it once and reset it for each attempt."""

    name = "corridor"
    reward_kind = "sum"
    success_threshold = SUCCESS_AT
    reported = ("step_limit",)
    seeded = True

    def __init__(self, settings: CorridorSettings | None = None) -> None:
        self.settings = settings or CorridorSettings()
        super().__init__(task_lists(self.settings.tasks), self.settings)
        self.reward_range = reward_range(self.settings.max_steps, self.settings.gamble)
        self.default_max_steps = self.settings.max_steps
        self._actions = actions_of(self.settings.gamble)
        self._chance = ("", 0)
        self._room = self._steps = 0

    def begin(self, task_id: str, seed: int) -> str:
        """In the first room; task and seed decide when `right` leads on."""
        self._chance = (task_id, seed)
        self._room = self._steps = 0
        return ROOMS[self._room]

    def act(self, action: str) -> tuple[str, float, bool]:
        """The last step that is left does not end the episode, for in the corridor nothing ends
        then: whoever plays stops there by `step_limit`, so that a learner can tell a cut from an
        end. A step beyond it is refused, and only then it is over."""
        if self._steps >= self.settings.max_steps:
            return self.over, 0.0, True
        word = action.strip().lower()
        this = (*self._chance, self._steps)
        won = wins(*this) if self.settings.gamble else None
        after = outcome(self._room, word, goes_on=goes_on(*this), wins=won)
        self._steps += 1
        if after.room is not None:
            self._room = after.room
        seen = after.seen if word in self._actions else f"{refusal(self._actions)}\n{after.seen}"
        return seen, after.reward, after.room is None

    def expert_steps(self, task_id: str, *, seed: int = 0) -> tuple[ExpertAction, ...]:
        """The actions that lead out of the gate by the shortest way that chance leaves, or what an
        expert of less skill does instead."""
        of = self.settings
        task_id = self.require_task(task_id)
        return plan(task_id, seed, of.max_steps, of.expert_skill, of.expert_gambles)

    def save(self) -> dict[str, Any]:
        return {"room": self._room, "steps": self._steps}

    def load(self, task_id: str, state: Mapping[str, Any]) -> None:
        match state:
            case {"seed": int(seed), "room": int(room), "steps": int(steps)} if (
                0 <= room < len(ROOMS) and 0 <= steps <= self.settings.max_steps
            ):
                self._chance = (task_id, seed)
                self._room, self._steps = room, steps
            case _:
                raise self.malformed()


def plan(
    task_id: str, seed: int, max_steps: int, skill: float = 1.0, gambles: float = 0.0
) -> tuple[ExpertAction, ...]:
    """The expert's actions until the episode is over, or `max_steps` of them where that is not
    enough: always `right`, the best action in every room, or as often as its skill says. With
    probability `gambles` a step is a gamble; of the others `skill` is the share that is `right`.
    How often `right` is needed is known beforehand, since chance is a function (`rules.goes_on`).
    """
    chance = random.Random(f"{seed} {task_id}")
    room: int | None = 0
    steps: list[ExpertAction] = []
    while room is not None and len(steps) < max_steps:
        if gambles and chance.random() < gambles:
            step = ExpertAction(GAMBLE, _LUCK)
        elif skill >= 1 or chance.random() < skill:
            step = ExpertAction("right", THOUGHT)
        else:
            step = ExpertAction(chance.choice(ACTIONS), _ASIDE)
        this = (task_id, seed, len(steps))
        room = outcome(room, step.action, goes_on=goes_on(*this), wins=wins(*this)).room
        steps.append(step)
    return tuple(steps)
