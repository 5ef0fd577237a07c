"""Plays the prefix of an episode again, so that the policy goes on from the state that it leads to.

An environment that shows or pays something else than the source's record is not in that state. Such
an episode ends as an error and is counted; `job_rollout.py` says how many a stage may have.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentc_backends.agents.common.episode import EpisodeRecord, EpisodeRules, EpisodeSession
from agentc_backends.agents.common.prefixes import Prefix, PrefixTurn
from agentc_backends.agents.common.prompt import observation_message
from agentc_backends.agents.common.same_state import (
    OVER,
    Same,
    in_turn,
    other_answer,
    other_task,
    unread,
)
from agentc_backends.agents.rollout.turns import TurnRules, action_of


@dataclass(frozen=True, slots=True)
class ReplayRules:
    """Of episodes with a prefix: whether its turns are `counted` against the limit of turns, and
    what must be equal when they are played again; `reward` leaves the texts out."""

    counted: bool = True
    same_state: Same = "observation"


async def replay_prefix(
    rules: EpisodeRules,
    turns: TurnRules,
    again: ReplayRules,
    prefix: Prefix,
    session: EpisodeSession,
    record: EpisodeRecord,
) -> str | None:
    """Carry the turns of `prefix` out and record them; a sentence where the environment differs
    from the source. Raises InfrastructureError."""
    source = prefix.source
    wrong = other_task(source, session.observation, again.same_state)
    if wrong is not None:
        return wrong
    for number, turn in enumerate(prefix.turns, start=1):
        record.add_given(turn.reply, cut=turn.cut, raw=turn.raw)
        wrong = await _play(rules, turns, again, turn, session, record)
        if wrong is not None:
            return in_turn(number, source, wrong)
    # Replies of somebody else.
    record.invalid = 0
    return None


async def _play(
    rules: EpisodeRules,
    turns: TurnRules,
    again: ReplayRules,
    turn: PrefixTurn,
    session: EpisodeSession,
    record: EpisodeRecord,
) -> str | None:
    shown, role = rules.prompt.observation_prefix, rules.prompt.answered_by
    actions = turn.actions
    if actions is None:
        action = action_of(rules, turns, turn.reply)
        actions = () if action is None else (action,)
        told = observation_message(shown, turns.invalid_message)
        wrong = unread(turn, told["content"]) if action is None else None
        if wrong is not None:
            return wrong
    if not actions:
        record.add_invalid(turns.invalid_reward)
        record.messages.append({"role": role, "content": turn.told})
        return None
    step = await session.step(actions[0])
    record.add_step(step)
    message = observation_message(shown, step.observation, role)
    record.messages.append(message)
    if step.done:
        return OVER
    return other_answer(turn, message["content"], step.reward, record.reward, again.same_state)
