"""Action loops of an episode: a block of actions that is done again at once (Agent-R, arXiv
2501.11425, figure 4, of which no code was released).

The blocks of a run are counted once, at the shortest length: `a a a a` is one action, four times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentc_backends.agents.common.parse import (
    ActionSpace,
    ActionSpan,
    parse_action,
    whole_reply,
)
from agentc_backends.agents.common.prompt import ReplyFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRules:
    """A block of at most `longest` actions is a loop when it stands `times` times in a row; the
    others are the rollout's, for an action to be what the environment was given."""

    times: int
    longest: int
    action_span: ActionSpan
    action_space: ActionSpace
    no_action: Literal["invalid", "whole_reply"]
    reply_format: ReplyFormat


def actions_of(row: Mapping[str, Any], rules: LoopRules) -> list[str]:
    """The actions of an episode. A reply without one stands for itself, so that an agent that says
    the same nonsense again and again is in a loop as well. The answer of a search has its
    `actions` at hand."""
    if "actions" in row:
        return list(row["actions"])
    found = []
    for message in row["messages"][row["prompt_length"] :]:
        if message["role"] != "assistant":
            continue
        reply = message["content"]
        action = parse_action(
            reply, rules.reply_format, span=rules.action_span, space=rules.action_space
        )
        if action is None:
            whole = rules.no_action == "whole_reply"
            action = whole_reply(reply) if whole else reply.strip()
        found.append(action)
    return found


def repeats(actions: Sequence[str], rules: LoopRules) -> Counter[int]:
    """How often a block was done again, by its number of actions; blocks that do not stand often
    enough in a row for a loop are not counted."""
    counted: Counter[int] = Counter()
    for length, times in _runs(actions, rules.longest):
        if times >= rules.times:
            counted[length] += times - 1
    return counted


def _runs(actions: Sequence[str], longest: int) -> Iterator[tuple[int, int]]:
    """(length of a block, times in a row) of every block that stands at least twice in a row."""
    for length in range(1, min(longest, len(actions) // 2) + 1):
        start = 0
        while start + 2 * length <= len(actions):
            block = actions[start : start + length]
            times = 1
            while actions[start + times * length : start + (times + 1) * length] == block:
                times += 1
            if times > 1 and not _is_run(block):
                yield length, times
            # A block may begin within the last one of a run, but not with an action of the others.
            start += (times - 1) * length + 1 if times > 1 else 1


def _is_run(block: Sequence[str]) -> bool:
    """Whether a block is itself a shorter one, several times."""
    length = len(block)
    return any(
        length % part == 0 and block == [*block[:part]] * (length // part)
        for part in range(1, length)
    )
