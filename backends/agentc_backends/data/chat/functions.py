"""Functions in rows of data: the first message, a system one, has them as `tools`; replies hold
their calls as the model wrote them, and results are messages of the role `tool`.

A server is asked with what `requested` makes of such a row, and `in_plain_text` is what a chat
format without a place for functions writes of it: both give the same tokens. Neighbours:
`tool_calls.py` (the notation), `tokens.py`; clients of servers use it. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from agentc_backends.data.chat.tool_calls import plain_messages

Message: TypeAlias = Mapping[str, Any]
Tools: TypeAlias = Sequence[Mapping[str, Any]]


def tools_of_row(messages: Sequence[Message]) -> Tools:
    """The functions of a conversation; none where it has none."""
    tools: Tools = messages[0].get("tools", ()) if messages else ()
    return tools


def has_functions(messages: Sequence[Message]) -> bool:
    """Whether a conversation declares functions, or holds results of some that it does not declare,
    as published data may."""
    return bool(tools_of_row(messages)) or any(m["role"] == "tool" for m in messages)


def requested(messages: Sequence[Message]) -> tuple[list[dict[str, Any]], Tools]:
    """The messages and functions of a request to a server: roles and texts, a number for each
    result. Replies stay texts with their calls inside, so that a prompt goes on from the tokens
    that were generated. A first message that says nothing but its functions is left out."""
    tools = tools_of_row(messages)
    said = [
        {"role": m["role"], "content": m["content"]}
        | ({"tool_call_id": f"call{place:05}"} if m["role"] == "tool" else {})
        for place, m in enumerate(messages)
    ]
    if tools and not messages[0]["content"]:
        del said[0]
    return said, tools


def in_plain_text(messages: Sequence[Message]) -> Sequence[Message]:
    """The conversation with functions and results as texts of the system and the user; as many
    messages as before, with their marks. Raises FormatError as `plain_messages` does."""
    if not has_functions(messages):
        return messages
    plain = plain_messages(*requested(messages))
    marked = [{n: v for n, v in message.items() if n != "tools"} for message in messages]
    return [{**was, **now} for was, now in zip(marked, plain, strict=True)]
