"""The expert: always right, which is optimal in every room (`exact.optimal_values`), or as often as
its skill says.

How often it has to be said is known beforehand, since chance is a function (`rules.goes_on`).
"""

from __future__ import annotations

import random

from agentc_backends.environments.corridor.rules import ACTIONS, goes_on, outcome
from agentc_backends.environments.server.world import ExpertAction

THOUGHT = "The way out is at the right end."
_ASIDE = "I try something else."


def plan(task_id: str, seed: int, max_steps: int, skill: float = 1.0) -> tuple[ExpertAction, ...]:
    """What is said until the episode is over, or `max_steps` times where that is not enough."""
    chance = random.Random(f"{seed} {task_id}")
    room: int | None = 0
    steps: list[ExpertAction] = []
    while room is not None and len(steps) < max_steps:
        knows = skill >= 1 or chance.random() < skill
        action = "right" if knows else chance.choice(ACTIONS)
        room = outcome(room, action, goes_on=goes_on(task_id, seed, len(steps))).room
        steps.append(ExpertAction(action, THOUGHT if knows else _ASIDE))
    return tuple(steps)
