"""The expert: always right, which is optimal in every room (`exact.optimal_values`).

How often it has to be said is known beforehand, since chance is a function (`rules.goes_on`).
"""

from __future__ import annotations

from agentc_backends.environments.corridor.rules import goes_on, outcome
from agentc_backends.environments.server.world import ExpertAction

THOUGHT = "The way out is at the right end."


def plan(task_id: str, seed: int, max_steps: int) -> tuple[ExpertAction, ...]:
    """`right` until the gate is behind, or `max_steps` times where that is not enough."""
    room: int | None = 0
    steps: list[ExpertAction] = []
    while room is not None and len(steps) < max_steps:
        room = outcome(room, "right", goes_on=goes_on(task_id, seed, len(steps))).room
        steps.append(ExpertAction("right", THOUGHT))
    return tuple(steps)
