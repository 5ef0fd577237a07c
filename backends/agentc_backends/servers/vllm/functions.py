"""Functions in requests to vLLM, written into plain messages where the checkpoint's chat format has
no place for them: as its trainers and the embedded server write them.

vLLM's template would leave them out without a word. `gate.py` asks before it passes a request on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.chat.tool_calls import plain_messages
from agentc_backends.data.chat.tool_templates import TemplateTools
from agentc_backends.openai_api.conversation import messages
from agentc_backends.openai_api.tools import read_tool_use
from agentc_backends.openai_api.values import refused


def format_tools(model: Path) -> TemplateTools:
    """What the chat format of a checkpoint does with functions. Raises FormatError where it has
    none that can be read."""
    return load_encoder(model).format_tools()


def has_function_texts(body: Mapping[str, Any]) -> bool:
    """Whether a conversation has functions, calls or results, which a template has to write."""
    said = _said(body)
    calls = any(message.get("tool_calls") for message in said)
    results = any(message.get("role") == "tool" for message in said)
    return bool(body.get("tools") or calls or results)


def _said(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = body.get("messages")
    return [m for m in listed if isinstance(m, dict)] if isinstance(listed, list) else []


class FunctionTexts:
    """Of one server. `model` is the folder of what it serves, which is read at the first request
    that has functions."""

    def __init__(
        self, model: Path, tools_of: Callable[[Path], TemplateTools] = format_tools
    ) -> None:
        self._model = model
        self._tools_of = tools_of

    def written(self, body: Mapping[str, Any], *, replies: bool) -> dict[str, Any] | None:
        """The body of a chat, which `replies`, or of `/tokenize` with functions, calls and results
        as texts; None where vLLM shows them by itself, or there are none. Functions whose calls it
        is to read out of the reply stay in the body, too. Raises ApiError."""
        if not has_function_texts(body):
            return None
        calls = any(message.get("tool_calls") for message in _said(body))
        unread = bool(body.get("tools")) and body.get("tool_choice") == "none"
        match self._found:
            case TemplateTools.RENDERED:
                return None
            case TemplateTools.FOREIGN if unread and not calls:
                raise refused(
                    "tool_choice",
                    "is none, so that calls stay in the reply as they were written, and the "
                    "model's chat template writes them in a notation that nobody reads from there",
                )
            case TemplateTools.FOREIGN:
                return None
        # Its words alone: vLLM holds replies to forms by itself.
        tools = read_tool_use({"tools": body.get("tools") or [], "tool_choice": "none"}).tools
        try:
            plain = plain_messages(messages(body), tools)
        except FormatError as error:
            raise refused("messages", str(error)) from error
        changed = {**body, "messages": plain}
        if unread or not replies:
            for name in ("tools", "tool_choice", "parallel_tool_calls"):
                changed.pop(name, None)
        return changed

    @cached_property
    def _found(self) -> TemplateTools:
        try:
            return self._tools_of(self._model)
        except FormatError as error:
            raise refused("tools", f"{error}") from error
