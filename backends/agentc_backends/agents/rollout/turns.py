"""TurnRules: how a policy's turns go, and what action a reply holds. `episode.py` plays by them,
and `prefix_replay.py` what comes before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc_backends.agents.common.episode import EpisodeRules
from agentc_backends.agents.common.parse import (
    ActionSpace,
    ActionSpan,
    parse_action,
    whole_reply,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """How a policy's turns go: their limit, and what replies mean. Plans of before lack what has a
    default here."""

    max_turns: int
    on_invalid: Literal["observe", "fail"]
    on_overflow: Literal["drop_oldest", "end", "error"]
    invalid_message: str
    invalid_reward: Literal["keep", "zero"] = "keep"
    action_span: ActionSpan
    action_space: ActionSpace
    no_action: Literal["invalid", "whole_reply"] = "invalid"


def action_of(rules: EpisodeRules, turns: TurnRules, reply: str) -> str | None:
    """The action of a reply; None when it is invalid. Without a mark the whole reply may be one,
    and then an empty action is one too, as in Agent-R's evaluation."""
    action = parse_action(
        reply, rules.prompt.reply_format, span=turns.action_span, space=turns.action_space
    )
    if action is None and turns.no_action == "whole_reply":
        return whole_reply(reply)
    return action
