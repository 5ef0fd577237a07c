"""Puts the events of a streamed chat completion together to the whole reply, as they pass.

Neighbours: `passing.py`, which hands them on; `exchange.py`, which reads the whole reply.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

DONE = "[DONE]"


async def events_of(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """The data of each server-sent event of a body's lines."""
    data: list[str] = []
    async for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)


class EventReader:
    """The first choice of a stream; `ended` once its last event was seen, for what was cut off
    before is no reply."""

    def __init__(self) -> None:
        self.ended = False
        self.failed: str | None = None
        self._text: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._choice: dict[str, Any] = {"finish_reason": None}
        self._answer: dict[str, Any] = {}

    def add(self, data: str) -> dict[str, Any] | None:
        """Read an event and give its object, None at the end of the stream. Raises ValueError."""
        if data == DONE:
            self.ended = True
            return None
        event = json.loads(data)
        if not isinstance(event, dict):
            raise ValueError(f"an event that is no object: {data[:200]}")
        if "error" in event:
            self.failed = str(event["error"])[:500]
            return event
        for name in ("prompt_token_ids", "usage"):
            if event.get(name) is not None:
                self._answer[name] = event[name]
        for choice in event.get("choices") or ():
            if choice.get("index", 0) == 0:
                self._add(choice)
        return event

    def whole(self) -> dict[str, Any]:
        """The reply, as if it had not been streamed."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._calls:
            message["tool_calls"] = [self._calls[place] for place in sorted(self._calls)]
        return {**self._answer, "choices": [{**self._choice, "message": message}]}

    def _add(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta") or {}
        self._text.append(delta.get("content") or "")
        for piece in delta.get("tool_calls") or ():
            call = self._calls.setdefault(
                piece.get("index", 0), {"id": "", "function": {"name": "", "arguments": ""}}
            )
            call["id"] = call["id"] or piece.get("id") or ""
            for name, text in (piece.get("function") or {}).items():
                call["function"][name] = (call["function"].get(name) or "") + (text or "")
        for name in ("finish_reason", "stop_reason"):
            if choice.get(name) is not None:
                self._choice[name] = choice[name]
        if choice.get("token_ids") is not None:
            self._choice.setdefault("token_ids", []).extend(choice["token_ids"])
        scores = (choice.get("logprobs") or {}).get("content")
        if scores is not None:
            kept = self._choice.setdefault("logprobs", {"content": []})
            kept["content"].extend(scores)
