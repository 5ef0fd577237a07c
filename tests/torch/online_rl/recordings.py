"""Episodes of somebody who wanders in `env.corridor`, as an expert stage records them."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from agentc_backends.agents.common.connect import AgentGymWorld
from agentc_backends.agents.common.episode import Attempt, EpisodeRules
from agentc_backends.agents.common.prompts import EpisodePrompt
from agentc_backends.agents.expert.job_expert import PlannedStep, replay
from agentc_backends.environments.server.inside import InsideEnvironment
from agentc_backends.environments.server.program import opener_of

_CORRIDOR = ["-m", "agentc_backends.environments.corridor.job_serve"]


def rules_of(memory: Literal["all", "last"]) -> EpisodeRules:
    """Of the corridor, under a prompt that shows a policy all, or the last observation."""
    return EpisodeRules(
        prompt=EpisodePrompt(
            instruction="left, right or look?",
            acknowledgement="OK",
            examples=(),
            reply_format="text",
            observation_prefix="",
            memory=memory,
        ),
        split="train",
        reward_range=(-100.0, 10.0),
        reward_kind="sum",
        success_at=1.0,
    )


def wandering(
    episodes: int, memory: Literal["all", "last"] = "last", skill: float = 0.0
) -> list[dict[str, Any]]:
    """Rows of trajectories; at skill 0 each action is drawn evenly."""
    settings = {"tasks": episodes, "expert_skill": skill}
    world = AgentGymWorld(InsideEnvironment(opener_of(_CORRIDOR, settings)))
    rules = rules_of(memory)

    async def played(number: int) -> dict[str, Any]:
        attempt = Attempt(
            position=number, task_id=f"train-{number}", number=0, seed=number, prompt_seed=0
        )
        plan = await world.plan(attempt.task_id, 0)
        steps = [PlannedStep(step["action"], step.get("thought")) for step in plan]
        return await replay(rules, attempt, steps, world, thoughts=True)

    async def all_played() -> list[dict[str, Any]]:
        return [await played(number) for number in range(episodes)]

    return asyncio.run(all_played())
