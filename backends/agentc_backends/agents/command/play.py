"""Plays one episode by the user's program: opens it, runs the program against the recorder and the
door, and makes a row of what they noted.

`job_command.py` plays all of them; `recorded/episode_row.py` makes the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentc_backends.agents.command.agent_process import AgentProgram
from agentc_backends.agents.command.door import PATH, Door, DoorEpisode
from agentc_backends.agents.common.connect import AgentGymWorld, ChatPolicy
from agentc_backends.agents.common.episode import Attempt, EpisodeRules
from agentc_backends.agents.common.prompt import opening
from agentc_backends.agents.recorded.episode_row import end_of, record_of
from agentc_backends.agents.recorded.exact import ProvedConversation
from agentc_backends.agents.recorded.exchange import Message
from agentc_backends.agents.recorded.history import Unproved
from agentc_backends.agents.recorded.published import UNPROVED, proved
from agentc_backends.agents.recorded.recorder import Recorder
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStage:
    """What all episodes of a stage share."""

    rules: EpisodeRules
    max_turns: int
    on_overflow: Literal["end", "error"]
    params: Mapping[str, Any]
    world: AgentGymWorld
    policy: ChatPolicy
    recorder: Recorder
    door: Door
    program: AgentProgram
    folder: Path
    model: str


async def play(stage: ProgramStage, attempt: Attempt) -> dict[str, Any]:
    """The episode's row. Raises InfrastructureError where a server failed, FatalError where one
    refuses for good, ContextOverflowError where a prompt is too long and that is an error."""
    async with stage.world.open(attempt.task_id, attempt.prompt_seed) as session:
        limit = min(stage.max_turns, session.step_limit or stage.max_turns)
        recorded = stage.recorder.open(seed=attempt.seed, most_replies=limit)
        told = _told(stage, attempt, session.observation, limit)
        episode = DoorEpisode(
            recorded=recorded, observation=session.observation, session=session, told=told
        )
        stage.door.open(episode)
        try:
            wrong = await stage.program.run(
                stage.folder / f"{attempt.position}-{attempt.number}",
                told,
                _variables(stage, attempt, recorded.key),
            )
        finally:
            stage.door.close(episode)
            stage.recorder.close(recorded)
    if episode.failed is not None:
        raise episode.failed
    if recorded.failed is not None:
        raise InfrastructureError(recorded.failed)
    if recorded.overflowed and stage.on_overflow == "error":
        raise ContextOverflowError(f"{attempt.id}: a prompt is longer than the context", status=400)
    return await _row(stage, attempt, episode, wrong)


async def _row(
    stage: ProgramStage, attempt: Attempt, episode: DoorEpisode, wrong: str | None
) -> dict[str, Any]:
    found = await _proved(stage, episode)
    sure = found if isinstance(found, ProvedConversation) else None
    record = record_of(stage.rules, attempt, episode, sure)
    end, error = end_of(stage.rules, episode, record, wrong)
    row = record.row(end, error)
    if isinstance(found, Unproved) and end != "error":
        row[UNPROVED] = {"reason": found.reason, "detail": found.detail}
    return row


async def _proved(stage: ProgramStage, episode: DoorEpisode) -> ProvedConversation | Unproved:
    if any(replies == 0 for replies, _ in episode.steps):
        return Unproved("shape", "the program acted before it had a reply")
    return await proved(stage.policy, episode.recorded)


def _told(stage: ProgramStage, attempt: Attempt, observation: str, limit: int) -> dict[str, Any]:
    messages: list[Message] = opening(stage.rules.prompt, observation)
    return {
        "task": attempt.task_id,
        "attempt": attempt.number,
        "observation": observation,
        "messages": messages,
        "observation_prefix": stage.rules.prompt.observation_prefix,
        "most_replies": limit,
        "params": dict(stage.params),
        "model": stage.model,
    }


def _variables(stage: ProgramStage, attempt: Attempt, key: str) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": f"{stage.recorder.url}/v1",
        "OPENAI_API_KEY": key,
        "AGENTC_MODEL": stage.model,
        "AGENTC_ENVIRONMENT_URL": f"{stage.recorder.url}{PATH}",
        "AGENTC_TASK": attempt.task_id,
    }
