"""Reads the messages of a request: roles and texts, calls of functions and their results.

Neighbours: `wire.py` (the rest of a request), `tools.py` (which functions there are).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from agentc_backends.openai_api.values import refused

Message: TypeAlias = dict[str, Any]
"""`role`, `content` (a text), and `tool_calls` (of an assistant) or `tool_call_id` (of a result)
where there are any."""

MAX_MESSAGES = 1 << 14
MAX_ROLE_LETTERS = 64
"""Chat templates know roles of a word; some write any role that they are given."""
_SHAPE = "{role, content}, both text, and tool_calls or tool_call_id where functions are called"


def messages(body: Mapping[str, Any]) -> list[Message]:
    """The field `messages`. A content in parts of text is joined, one that is null is empty."""
    value = body.get("messages")
    if not isinstance(value, list) or not value:
        raise refused("messages", "must be a list of at least one message")
    if len(value) > MAX_MESSAGES:
        raise refused("messages", f"has {len(value)} messages, over {MAX_MESSAGES}")
    return [_message(f"messages[{i}]", message) for i, message in enumerate(value)]


def letters(conversation: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> int:
    """Letters that a conversation's texts hold, roles aside: its prompt has no fewer."""
    said = sum(len(message["content"]) for message in conversation)
    calls = [call for message in conversation for call in message.get("tool_calls", ())]
    written = sum(len(call["function"]["arguments"]) for call in calls)
    return said + written + sum(len(tool["function"].get("description", "")) for tool in tools)


def _message(place: str, message: Any) -> Message:
    if not isinstance(message, dict):
        raise refused("messages", f"{place} must be {_SHAPE}")
    given = {name: value for name, value in message.items() if value is not None}
    role = given.pop("role", None)
    calls = given.pop("tool_calls", None) or []
    content = _text(place, given.pop("content", "" if calls else None))
    read: Message = {"role": role, "content": content}
    if not isinstance(role, str) or content is None:
        raise refused("messages", f"{place} must be {_SHAPE}")
    if len(role) > MAX_ROLE_LETTERS:
        raise refused(
            "messages", f"the role of {place} has {len(role)} letters, over {MAX_ROLE_LETTERS}"
        )
    if role == "tool":
        if not isinstance(given.get("tool_call_id"), str):
            raise refused("messages", f"{place} is a result and needs tool_call_id, a text")
        read["tool_call_id"] = given.pop("tool_call_id")
    if calls:
        if role != "assistant":
            raise refused("messages", f"{place}: only an assistant has tool_calls")
        read["tool_calls"] = [
            _call(f"{place}.tool_calls[{i}]", call) for i, call in enumerate(_list(place, calls))
        ]
    if given:
        named = ", ".join(sorted(given))
        raise refused("messages", f"{place} has unsupported fields ({named}); it must be {_SHAPE}")
    return read


def _text(place: str, content: Any) -> str | None:
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    for part in content:
        whole = isinstance(part, dict) and set(part) == {"type", "text"}
        if not whole or part["type"] != "text" or not isinstance(part["text"], str):
            raise refused("messages", f"{place} has a part that is no {{type: text, text: ...}}")
    return "\n".join(part["text"] for part in content)


def _list(place: str, calls: Any) -> list[Any]:
    if not isinstance(calls, list):
        raise refused("messages", f"{place}.tool_calls must be a list")
    return calls


def _call(place: str, call: Any) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    arguments = function.get("arguments", "{}") if isinstance(function, dict) else None
    number = call.get("id") if isinstance(call, dict) else None
    texts = [name, arguments, number]
    if not all(isinstance(each, str) for each in texts) or call.get("type") != "function":
        raise refused(
            "messages", f"{place} must be {{id, type: function, function: {{name, arguments}}}}"
        )
    return {
        "id": number, "type": "function", "function": {"name": name, "arguments": arguments}
    }  # fmt: skip
