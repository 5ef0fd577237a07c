"""An episode that exported packages have to play as it is played here."""

from __future__ import annotations

from typing import Any

from agentc_backends.environments.gym import make


def played_here() -> tuple[list[str], list[list[Any]]]:
    """The expert's actions in the task that seed 3 means, and what is told here."""
    env = make("env.textcraft", split="test", max_depth=2)
    task = env.tasks()[3]
    actions = ["xyzzy", *(step.action for step in env.expert(task, seed=3))]
    first, _ = env.reset(seed=3, options={"task": task})
    rows: list[list[Any]] = [[first, False]]
    for action in actions:
        observation, _, terminated, _, _ = env.step(action)
        rows.append([observation, terminated])
    return actions, rows
