"""Replays a planner's steps in the environment, so that observations and reward are real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentc_backends.agents.common.episode import (
    Attempt,
    EpisodeRecord,
    EpisodeRules,
    EpisodeSource,
    Reply,
)
from agentc_backends.agents.common.prompt import observation_message, reply_text


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of an expert: what it thinks, where it says so, and what it does."""

    action: str
    thought: str | None


async def replay(
    rules: EpisodeRules,
    attempt: Attempt,
    plan: Sequence[PlannedStep],
    world: EpisodeSource,
    *,
    thoughts: bool,
) -> dict[str, Any]:
    """One expert trajectory, with the reward that the environment gives (never one assumed).

    A plan that ends before the environment says so is a failure with the reward so far.
    """
    record, prompt = EpisodeRecord(rules, attempt, "expert"), rules.prompt
    async with world.open(attempt.task_id, attempt.prompt_seed) as session:
        record.open(session.observation)
        for step in plan:
            # A step without a thought is an action alone.
            thought = (step.thought or None) if thoughts else None
            record.add_reply(Reply(reply_text(prompt, step.action, thought), "plan", 0, 0))
            answer = await session.step(step.action)
            record.add_step(answer)
            record.messages.append(
                observation_message(
                    prompt.observation_prefix, answer.observation, prompt.answered_by
                )
            )
            if answer.done:
                break
    return record.row("success" if record.reward >= rules.success_at else "failure")
