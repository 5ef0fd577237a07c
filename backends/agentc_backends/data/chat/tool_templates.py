"""What a shipped chat template does with functions: found out by having it render a call.

Used by `tokens.py` and by the server's `chat_text.py`; `tool_calls.py` has the notation that is
read.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.tool_calls import read_reply

Render: TypeAlias = Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], str]
"""(messages, tools) -> text."""

_NAME = "find_probe"
_ARGUMENTS = {"place": "shelf"}


class TemplateTools(enum.Enum):
    """UNKNOWN: it has no place for them. RENDERED: it writes calls in the notation that is read.
    FOREIGN: it writes them in another one."""

    UNKNOWN = enum.auto()
    RENDERED = enum.auto()
    FOREIGN = enum.auto()


def template_tools(render: Render) -> TemplateTools:
    """What the template does with functions and calls. Raises FormatError where it writes them in a
    notation that nobody here reads."""
    return readable(tools_of(render))


def readable(found: TemplateTools) -> TemplateTools:
    """What was found. Raises FormatError where it is FOREIGN."""
    if found is TemplateTools.FOREIGN:
        raise FormatError(
            "the model's chat template writes calls of functions in a notation that this "
            "server does not read; it reads <tool_call> with JSON (Hermes, Qwen 2.5 and 3)"
        )
    return found


def tools_of(render: Render) -> TemplateTools:
    """What the template does with functions and calls."""
    parameters = {"type": "object", "properties": {"place": {"type": "string"}}}
    function = {"name": _NAME, "description": "Finds it.", "parameters": parameters}
    tool = {"type": "function", "function": function}
    asked = [{"role": "user", "content": "Find it."}]
    call = {
        "id": "call00001",
        "type": "function",
        "function": {"name": _NAME, "arguments": _ARGUMENTS},
    }
    made: list[Mapping[str, Any]] = [
        *asked,
        {"role": "assistant", "content": "", "tool_calls": [call]},
    ]
    try:
        if _NAME not in render(asked, [tool]):
            return TemplateTools.UNKNOWN
        _, calls = read_reply(render(made, [tool]))
    except FormatError:
        return TemplateTools.FOREIGN
    named = [found for found in calls if found.name == _NAME]
    return TemplateTools.RENDERED if named else TemplateTools.FOREIGN
