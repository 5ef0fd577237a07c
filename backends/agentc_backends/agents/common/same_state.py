"""Whether turns that are played again lead to the state that they led to: what an environment shows
and pays is held against the source's record. Pure; `rollout/prefix_replay.py` and `search/root.py`
play the turns.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from agentc_backends.agents.common.prefixes import PrefixSource, PrefixTurn

Same: TypeAlias = Literal["observation", "reward"]
"""What must be equal when actions are carried out again; `reward` leaves the texts out."""

_SAME = 1e-6
"""Rewards that differ by less are equal: sums of floats differ by rounding."""

OVER = "the episode is over there"


def other_task(source: PrefixSource, shown: str, same: Same) -> str | None:
    """A sentence where the environment's first text is none of the source's task."""
    task = shown.split()
    if same == "reward" or source.task.split()[-len(task) :] == task:
        return None
    return f"the task {source.task_id!r} reads differently than in {source.id!r}"


def unread(turn: PrefixTurn, told: str) -> str | None:
    """The same for a reply in which no action is found, where the agent would be `told` so."""
    if told.split() == turn.told.split():
        return None
    return "no action can be read from its reply, which led to " + repr(_short(turn.told))


def other_answer(
    turn: PrefixTurn, told: str, reward: float, score: float, same: Same
) -> str | None:
    """The same for the answer to a turn's action: what the agent was `told`, the `reward` of the
    step, and the `score` of the episode so far."""
    if same == "observation" and told.split() != turn.told.split():
        return f"{_short(told)!r} was {_short(turn.told)!r}"
    if turn.reward is not None and abs(reward - turn.reward) > _SAME:
        return f"a reward of {reward:g} was {turn.reward:g}"
    if turn.score is not None and abs(score - turn.score) > _SAME:
        return f"a reward so far of {score:g} was {turn.score:g}"
    return None


def in_turn(number: int, source: PrefixSource, wrong: str) -> str:
    """A difference with the place where it was found; turns count from 1."""
    return f"turn {number} of {source.id!r}: {wrong}"


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."
