"""The function through which an agent acts under `reply_format: tools`: its signature, its calls.

The notation of calls is that of `data/chat/tool_calls.py`. Neighbours: `prompt.py` (replies that
are written), `parse.py` (replies that are read).
"""

from __future__ import annotations

import json
from typing import Any

from agentc_backends.data.chat.tool_calls import CALL_OPENS, call_text, read_reply

_NAME, _ARGUMENT = "act", "action"

ACT: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": _NAME,
        "description": "Does one action and gives what it leads to.",
        "parameters": {
            "type": "object",
            "properties": {_ARGUMENT: {"type": "string", "description": "The action."}},
            "required": [_ARGUMENT],
        },
    },
}
"""What a model is told of it. Another text would be another prompt: who changes it raises the
versions of those who play episodes."""


def action_call(action: str) -> str:
    """The call that does an action, as a reply writes it."""
    return call_text(_NAME, json.dumps({_ARGUMENT: action}, ensure_ascii=False))


def called_action(reply: str) -> str | None:
    """The action of the one call in a reply, stripped; None where there is no call or more than
    one, where it is not whole, of another function, or has other arguments than the action."""
    _, calls = read_reply(reply)
    if len(calls) != 1 or calls[0].name != _NAME or reply.count(CALL_OPENS) > 1:
        return None
    arguments = json.loads(calls[0].arguments)
    action = arguments.get(_ARGUMENT)
    if len(arguments) != 1 or not isinstance(action, str):
        return None
    return action.strip() or None
