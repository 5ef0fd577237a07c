"""Plays one episode: policy and environment in turns, until one of them or a limit ends it.

`common/runner.py` decides which episodes run when.
"""

from __future__ import annotations

from typing import Any

from agentc_backends.agents.common.episode import (
    Attempt,
    End,
    EpisodeRecord,
    EpisodeRules,
    EpisodeSession,
    EpisodeSource,
    Policy,
    Reply,
)
from agentc_backends.agents.common.prompt import observation_message
from agentc_backends.agents.common.seeds import turn_seed
from agentc_backends.agents.rollout.prefix_replay import ReplayRules, replay_prefix
from agentc_backends.agents.rollout.turns import TurnRules, action_of
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError

_WITHOUT = ReplayRules()


class BrokenEpisodeError(InfrastructureError):
    """A server failed in an episode, of which `record` holds what came before."""

    def __init__(self, message: str, record: EpisodeRecord) -> None:
        super().__init__(message)
        self.record = record


async def play(
    rules: EpisodeRules,
    turns: TurnRules,
    attempt: Attempt,
    policy: Policy,
    world: EpisodeSource,
    again: ReplayRules = _WITHOUT,
) -> dict[str, Any]:
    """Play one episode and give its row; one whose prefix leads elsewhere is `diverged`.

    Raises BrokenEpisodeError when a server fails, and ContextOverflowError when a prompt is too
    long and `on_overflow` is `error`.
    """
    record = EpisodeRecord(rules, attempt, "policy")
    try:
        async with world.open(attempt.task_id, attempt.prompt_seed) as session:
            record.open(session.observation)
            if attempt.prefix is not None:
                wrong = await replay_prefix(rules, turns, again, attempt.prefix, session, record)
                if wrong is not None:
                    return {**record.row("error", wrong), "diverged": True}
            limit = turns.max_turns + (0 if again.counted else record.turns)
            end = await _take_turns(rules, turns, limit, attempt, policy, session, record)
    except InfrastructureError as error:
        raise BrokenEpisodeError(str(error), record) from error
    return record.row(end)


async def _take_turns(
    rules: EpisodeRules,
    turns: TurnRules,
    limit: int,
    attempt: Attempt,
    policy: Policy,
    session: EpisodeSession,
    record: EpisodeRecord,
) -> End:
    prefix, role = rules.prompt.observation_prefix, rules.prompt.answered_by
    # The environment counts actions; a reply without one counts here alone.
    limit = min(limit, session.step_limit or limit)
    for turn in range(record.turns, limit):
        reply = await _reply(turns, record, policy, turn_seed(attempt.seed, turn), attempt.id)
        if reply is None:
            return "overflow"
        record.add_reply(reply)
        action = action_of(rules, turns, record.messages[-1]["content"])
        if action is None:
            record.add_invalid("lowest" if turns.on_invalid == "fail" else turns.invalid_reward)
            if turns.on_invalid == "fail":
                return "failure"
            record.messages.append(observation_message(prefix, turns.invalid_message, role))
            continue
        step = await session.step(action)
        record.add_step(step)
        record.messages.append(observation_message(prefix, step.observation, role))
        if step.done:
            return "success" if record.reward >= rules.success_at else "failure"
    return "limit"


async def _reply(
    turns: TurnRules, record: EpisodeRecord, policy: Policy, seed: int, affinity: str
) -> Reply | None:
    """The policy's reply; None when the prompt is too long and that ends the episode."""
    while True:
        try:
            return await policy.reply(record.prompt(), seed, affinity)
        except ContextOverflowError:
            if turns.on_overflow == "error":
                raise
            if turns.on_overflow == "end" or not record.forget():
                return None
