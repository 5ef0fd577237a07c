"""Finds the action in a reply.

`line` takes the first line that starts with `Action:` (else the first `Action:` anywhere, to the
end of its line). `rest` is the rule of ETO's code: the first `Action:` anywhere, and everything
after it to the end of the reply, later lines and later `Action:` marks included. `last` is the
rule of Agent-R's code: everything after the last `Action:`, without a leading number and dot.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from agentc_backends.rollout_react.prompt import ReplyFormat

ActionSpan: TypeAlias = Literal["line", "rest", "last"]
ActionSpace: TypeAlias = Literal["optional", "required"]

_MARKS = {"optional": r"Action:[ \t]*", "required": r"Action: [ \t]*"}


def parse_action(
    reply: str,
    reply_format: ReplyFormat,
    *,
    span: ActionSpan = "line",
    space: ActionSpace = "optional",
) -> str | None:
    """The action, stripped, or None when the reply holds none.

    `space` says whether a space must follow the colon (ETO: required for WebShop and ScienceWorld,
    optional for ALFWorld). With `action_only` the whole reply, or its first line with text
    (`line`), is the action.
    """
    text = reply.strip()
    if reply_format == "action_only":
        found = text.splitlines()[0] if text and span == "line" else text
        return found.strip() or None
    mark = _MARKS[space]
    if span == "last":
        *before, after = re.split(mark, text)
        return (re.sub(r"^\d+\.\s*", "", after).strip() or None) if before else None
    if span == "rest":
        match = re.search(mark + r"(.*)", text, flags=re.DOTALL)
    else:
        match = re.search(r"^[ \t]*" + mark + r"(.*)", text, flags=re.MULTILINE) or re.search(
            mark + r"(.*)", text
        )
    return (match.group(1).strip() or None) if match else None
