"""Plays one episode of a taskset against the recorder, and makes a row of what was noted.

Neighbours: `world.py`, which lets verifiers play; `job_taskset.py` plays all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentc_backends.agents.common.connect import ChatPolicy
from agentc_backends.agents.common.episode import Attempt, EpisodeRules, Step
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.recorded.episode_row import PlayedEpisode, end_of, record_of
from agentc_backends.agents.recorded.exact import ProvedConversation
from agentc_backends.agents.recorded.history import Unproved
from agentc_backends.agents.recorded.published import UNPROVED, proved
from agentc_backends.agents.recorded.recorder import Recorder
from agentc_backends.agents.recorded.session import RecordedSession
from agentc_backends.agents.verifiers.world import TasksetOutcome, TasksetWorld
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksetStage:
    """What all episodes of a stage share."""

    rules: EpisodeRules
    max_turns: int
    on_overflow: Literal["end", "error"]
    world: TasksetWorld
    policy: ChatPolicy
    recorder: Recorder
    model: str


async def play(stage: TasksetStage, attempt: Attempt) -> dict[str, Any]:
    """The episode's row. Raises InfrastructureError where the server failed, FatalError where a
    reward is none that was declared, ContextOverflowError where an overflow is an error."""
    recorded = stage.recorder.open(seed=attempt.seed, most_replies=stage.max_turns)
    try:
        outcome = await stage.world.play(
            attempt.task_id, stage.recorder.url, recorded.key, recorded.name, stage.model
        )
    finally:
        stage.recorder.close(recorded)
    if recorded.failed is not None:
        raise InfrastructureError(recorded.failed)
    if recorded.overflowed and stage.on_overflow == "error":
        raise ContextOverflowError(f"{attempt.id}: a prompt is longer than the context", status=400)
    _check(stage.rules, attempt, outcome)
    episode = _played(recorded, outcome)
    found = await proved(stage.policy, recorded)
    sure = found if isinstance(found, ProvedConversation) else None
    record = record_of(stage.rules, attempt, episode, sure)
    end, error = end_of(stage.rules, episode, record, outcome.wrong)
    row = record.row(end, error)
    if isinstance(found, Unproved) and end != "error":
        row[UNPROVED] = {"reason": found.reason, "detail": found.detail}
    return row


def _check(rules: EpisodeRules, attempt: Attempt, outcome: TasksetOutcome) -> None:
    low, high = rules.reward_range
    if outcome.reward is not None and not low <= outcome.reward <= high:
        raise FatalError(
            f"{attempt.id}: the taskset gave the reward {outcome.reward:g}, and declared are "
            f"{low:g} to {high:g}; say in the environment's entry what its rewards are: "
            "`reward: {lowest: ..., highest: ...}`"
        )


def _played(recorded: RecordedSession, outcome: TasksetOutcome) -> PlayedEpisode:
    """A step behind each reply, of which the last earns what the taskset gave. What was said in
    between is taken from the request that followed."""
    exchanges = recorded.exchanges
    first = exchanges[0].messages if exchanges else recorded.unanswered
    opening = _text(first[-1]) if first else ""
    episode = PlayedEpisode(recorded=recorded, observation=opening, answered=False)
    for number, after in enumerate(exchanges[1:], start=1):
        episode.steps.append((number, Step(_text(after.messages[-1]), 0.0, False)))
    if exchanges and outcome.reward is not None:
        episode.steps.append((len(exchanges), Step("", outcome.reward, outcome.done)))
    return episode


def _text(message: Mapping[str, Any]) -> str:
    return str(message["content"])
