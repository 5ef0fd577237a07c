"""Plays one episode: policy and environment in turns, until one of them or a limit ends it; before
that the episode's prefix, where it has one, is carried out again.

An environment that shows or pays something else than the prefix's source recorded is not in that
state. Such an episode ends as an error and is counted; `job_rollout.py` says how many a stage may
have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentc.kinds.interaction import TurnSettings
from agentc_backends.agents.common.actions import parse_action, whole_reply
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
from agentc_backends.agents.common.prefixes import (
    EPISODE_OVER,
    Prefix,
    PrefixTurn,
    SameState,
    answer_difference,
    at_turn,
    missing_action,
    task_difference,
)
from agentc_backends.agents.common.prompts import observation_message
from agentc_backends.agents.common.seeds import turn_seed
from agentc_backends.agents.common.settings import ReplyRules
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError


@dataclass(frozen=True, kw_only=True)
class TurnRules(ReplyRules, TurnSettings):
    """How a policy's turns go: their limit, and what replies mean."""

    max_turns: int


def turn_action(rules: EpisodeRules, turns: TurnRules, reply: str) -> str | None:
    """The action of a reply; None when it is invalid. Without a mark the whole reply may be one,
    and then an empty action is one too, as in Agent-R's evaluation."""
    action = parse_action(
        reply, rules.prompt.reply_format, span=turns.action_span, space=turns.action_space
    )
    if action is None and turns.no_action == "whole_reply":
        return whole_reply(reply)
    return action


@dataclass(frozen=True, slots=True)
class ReplayRules:
    """Of episodes with a prefix: whether its turns are `counted` against the limit of turns, and
    what must be equal when they are played again; `reward` leaves the texts out."""

    counted: bool = True
    same_state: SameState = "observation"


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
    wrong = task_difference(source, session.observation, again.same_state)
    if wrong is not None:
        return wrong
    for number, turn in enumerate(prefix.turns, start=1):
        record.add_prefix_reply(turn.reply, cut=turn.cut, raw=turn.raw)
        wrong = await _play(rules, turns, again, turn, session, record)
        if wrong is not None:
            return at_turn(number, source, wrong)
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
        action = turn_action(rules, turns, turn.reply)
        actions = () if action is None else (action,)
        told = observation_message(shown, turns.invalid_message)
        wrong = missing_action(turn, told["content"]) if action is None else None
        if wrong is not None:
            return wrong
    if not actions:
        record.add_invalid(turns.invalid_reward)
        record.messages.append({"role": role, "content": turn.answer})
        return None
    step = await session.step(actions[0])
    record.add_step(step)
    message = observation_message(shown, step.observation, role)
    record.messages.append(message)
    if step.done:
        return EPISODE_OVER
    return answer_difference(turn, message["content"], step.reward, record.reward, again.same_state)


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
        action = turn_action(rules, turns, record.messages[-1]["content"])
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
