"""Declares `env.corridor`: four rooms with known values, served by `job_serve.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import EnvironmentBackend, ExpectedExpert
from agentc.kinds.field import Json
from agentc_backends.environments.corridor.settings import (
    FEWEST_STEPS,
    MAX_STEPS,
    SPLITS,
    SUCCESS_AT,
    TASKS,
    CorridorSettings,
    reward_range,
)
from agentc_backends.environments.declaration import environment_backend
from agentc_backends.software import LIGHT


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way."""
    steps = given.get("max_steps", MAX_STEPS)
    if not isinstance(steps, int) or steps < FEWEST_STEPS:
        return BACKEND
    reach = reward_range(steps, given.get("gamble") is True)
    return replace(BACKEND, max_turns=steps, reward_range=reach)


def _expected_tasks(given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    tasks = given.get("tasks")
    count = float(tasks if isinstance(tasks, int) else TASKS)
    return dict.fromkeys(SPLITS, (count, 1.0))


def _expected_expert(given: Mapping[str, Json]) -> ExpectedExpert:
    """Means over its tasks: four rooms take five steps, and a gamble ends the episode."""
    steps, turns = given.get("max_steps"), 2.0 if given.get("expert_gambles") else 5.0
    turns = min(turns, float(steps)) if isinstance(steps, int) else turns
    return ExpectedExpert(turns=turns, prompt=8, reply=60, observation=30, factor=1.3)


BACKEND = environment_backend(
    CorridorSettings,
    id="env.corridor",
    version=1,
    module="agentc_backends.environments.corridor.job_serve",
    inside=True,
    doc="A corridor of four rooms and three actions, whose values are known exactly: to check what "
    "learns from rewards. Runs on a CPU and needs nothing.",
    software=LIGHT,
    splits=SPLITS,
    reward_range=reward_range(MAX_STEPS),
    success_at=SUCCESS_AT,
    max_turns=MAX_STEPS,
    expected_tasks=_expected_tasks,
    expected_expert=_expected_expert,
    configured=_configured,
    capabilities=frozenset({"expert", "fork", "snapshot", "seed"}),
)
