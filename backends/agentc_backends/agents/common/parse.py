"""Finds the action in a reply.

`line` takes the first line that starts with `Action:` (else the first `Action:` anywhere, to the
end of its line). `rest` is the rule of ETO's code: the first `Action:` anywhere, and everything
after it to the end of the reply, later lines and later `Action:` marks included. `last` and
`after_last` are those of Agent-R's code: everything after the last `Action:`, in its search without
a leading number and dot, in its evaluation as it stands.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from agentc_backends.agents.common.functions import called_action
from agentc_backends.agents.common.prompt import ReplyFormat

ActionSpan: TypeAlias = Literal["line", "rest", "last", "after_last"]
ACTION_SPANS: tuple[ActionSpan, ...] = ("line", "rest", "last", "after_last")
ActionSpace: TypeAlias = Literal["optional", "required"]

_MARK = "Action:"
_SPACES = {"optional": r"[ \t]*", "required": r" [ \t]*"}
_FIRST_TURN = ("Action 1:", "Thought 1:")


def parse_action(
    reply: str,
    reply_format: ReplyFormat,
    *,
    span: ActionSpan = "line",
    space: ActionSpace = "optional",
    numbered: bool = False,
) -> str | None:
    """The action, stripped, or None when the reply holds none.

    `space` says whether a space must follow the colon (ETO: required for WebShop and ScienceWorld,
    optional for ALFWorld). In a `numbered` reply `Action 1:` is the mark where it stands at all.
    With `action_only` the whole reply, or its first line with text (`line`), is the action; with
    `text` it is always the whole one, and an empty reply an empty action. With `tools` it is what
    the one call of a function says.
    """
    text = reply.strip()
    if reply_format == "text":
        return text
    if reply_format == "tools":
        return called_action(text)
    if reply_format == "action_only":
        found = text.splitlines()[0] if text and span == "line" else text
        return found.strip() or None
    word = _FIRST_TURN[0] if numbered and _FIRST_TURN[0] in text else _MARK
    mark = re.escape(word) + _SPACES[space]
    if span in ("last", "after_last"):
        *before, after = re.split(mark, text)
        if span == "last":
            after = re.sub(r"^\d+\.\s*", "", after.strip() if numbered else after)
        return (after.strip() or None) if before else None
    if span == "rest":
        match = re.search(mark + r"(.*)", text, flags=re.DOTALL)
    else:
        match = re.search(r"^[ \t]*" + mark + r"(.*)", text, flags=re.MULTILINE) or re.search(
            mark + r"(.*)", text
        )
    return (match.group(1).strip() or None) if match else None


def has_mark(reply: str) -> bool:
    """Whether an action was announced, be it an empty one."""
    return _MARK in reply


def without_turn_numbers(reply: str) -> str:
    """`Action:` and `Thought:` for `Action 1:` and `Thought 1:`, as the search of Agent-R's code
    keeps replies: a model that numbers its turns counts each reply as its first."""
    for mark in _FIRST_TURN:
        reply = reply.replace(mark, mark.replace(" 1", ""))
    return reply.strip()
