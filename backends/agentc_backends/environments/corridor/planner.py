"""The expert: always right, which is optimal in every room (`exact.optimal_values`), or as often as
its skill says; and a gambler, where there is a gamble.

How often it has to be said is known beforehand, since chance is a function (`rules.goes_on`).
"""

from __future__ import annotations

import random

from agentc_backends.environments.corridor.rules import ACTIONS, GAMBLE, goes_on, outcome, wins
from agentc_backends.environments.server.world import ExpertAction

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
