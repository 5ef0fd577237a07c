"""ALFWorld as AgentGym's released client finds it: tasks are a `game`, counted as the server lists
them, and replies name the actions that are legal. `world_type` is taken and means nothing: texts
are all there is. Neighbour: `environment.py`."""

from __future__ import annotations

from typing import Any

from agentc_backends.environments.server.dialect import Answer, Dialect


def _extras(environment: Any) -> Answer:
    return {"available_actions": environment.legal_actions()}


def _available_actions(environment: Any) -> object:
    return environment.legal_actions()


ALFWORLD = Dialect(
    task_field="game",
    bodiless_create=True,
    extras=_extras,
    queries={"/available_actions": _available_actions},
)
