"""What TextCraft states of itself for estimates, held to its tasks."""

from __future__ import annotations

from statistics import mean
from typing import Any

import pytest

from agentc_backends.environments.textcraft.backend import BACKEND
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment
from agentc_backends.environments.textcraft.settings import TextCraftSettings


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_depth": 2, "max_expert_steps": 4, "distractors": 3},
        {"max_expert_steps": 8},
        {"max_expert_steps": 12, "distractors": 3},
        {"recipes": "invented", "invented_families": 300, "max_expert_steps": 4, "distractors": 3},
    ],
)
def test_an_experts_episode_is_as_stated(settings: dict[str, Any]) -> None:
    assert BACKEND.expected_expert is not None
    stated = BACKEND.expected_expert(settings)
    world = TextCraftEnvironment(TextCraftSettings(**settings))
    tasks = world.tasks("train")
    plans = {task: world.expert(task) for task in tasks}
    prompts, observations = [], []
    for task in tasks:
        prompts.append(len(world.reset(task)[0]))
        observations += [len(world.step(action)[0]) for action in plans[task]]
    for told, is_so in (
        (stated.turns, mean(map(len, plans.values()))),
        (stated.prompt, mean(prompts)),
        # Agents read it behind "Observation: ".
        (stated.observation, mean(observations) + len("Observation: ")),
    ):
        assert is_so / stated.factor < told < is_so * stated.factor
