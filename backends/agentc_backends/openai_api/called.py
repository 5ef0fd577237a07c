"""What a chat's reply says and what it calls, in OpenAI's shapes: whole, or in pieces as it comes.

Neighbours: `replies.py` and `chunks.py` (the users), `tools.py`; `data/chat/tool_calls.py` reads
the calls.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from agentc_backends.data.chat.tool_calls import ToolCall, ToolCallReader
from agentc_backends.openai_api.text_model import Choice
from agentc_backends.openai_api.tools import ToolUse


class ReplyParts:
    """One choice. Ids of calls follow from the prompt, the place and the call, so that a request
    that is made again, streamed or not, gets them again."""

    def __init__(self, prompt: Sequence[int], index: int, tools: ToolUse) -> None:
        self._seed = array("q", [*prompt, index]).tobytes()
        self._several = tools.several
        self._reader = ToolCallReader() if tools.read else None
        self.calls: list[dict[str, Any]] = []

    def add(self, text: str) -> list[dict[str, Any]]:
        """The deltas that are certain with this piece of text."""
        if self._reader is None:
            return [{"content": text}] if text else []
        return self._deltas(self._reader.add(text))

    def end(self) -> list[dict[str, Any]]:
        """The deltas that are left."""
        return [] if self._reader is None else self._deltas(self._reader.end())

    def finish_reason(self, choice: Choice) -> str:
        """Why the reply ended, once all of it has been read."""
        stopped = choice.finish_reason == "stop"
        return "tool_calls" if stopped and self.calls else choice.finish_reason

    def _deltas(self, parts: Iterable[str | ToolCall]) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = []
        for part in parts:
            if isinstance(part, str):
                deltas.append({"content": part})
            elif self._several or not self.calls:
                place = len(self.calls)
                self.calls.append(self._call(part, place))
                deltas.append({"tool_calls": [{"index": place, **self.calls[-1]}]})
        return deltas

    def _call(self, call: ToolCall, place: int) -> dict[str, Any]:
        text = f"\0{place}\0{call.name}\0{call.arguments}".encode("utf-8", "surrogatepass")
        number = hashlib.sha256(self._seed + text).hexdigest()[:24]
        function = {"name": call.name, "arguments": call.arguments}
        return {"id": f"call_{number}", "type": "function", "function": function}


def chat_message(
    prompt: Sequence[int], index: int, choice: Choice, tools: ToolUse
) -> tuple[dict[str, Any], str]:
    """A whole reply's message, and why it ended."""
    parts = ReplyParts(prompt, index, tools)
    deltas = [*parts.add(choice.text), *parts.end()]
    text = "".join(delta.get("content", "") for delta in deltas)
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if parts.calls:
        message |= {"content": text or None, "tool_calls": parts.calls}
    return message, parts.finish_reason(choice)
