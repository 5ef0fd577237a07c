"""Writes a reply in OpenAI's chunks while it is made.

Texts and token ids come as they are drawn. Log-probabilities stand in the last chunk of their
choice: they are told from a pass of their own once the reply has ended, so that they are those of
a reply without streaming to the last bit. Neighbours: `replies.py` (whole replies),
`growing_text.py`, `event_stream.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentc_backends.openai_api.called import ReplyParts
from agentc_backends.openai_api.event_stream import Put
from agentc_backends.openai_api.growing_text import GrowingText
from agentc_backends.openai_api.replies import (
    Decode,
    chat_scores,
    completion_scores,
    envelope,
    usage,
)
from agentc_backends.openai_api.text_model import Choice, TokenScore
from agentc_backends.openai_api.tools import ToolUse

Echo = tuple[str, Sequence[TokenScore]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFacts:
    """What all chunks of a reply share. `usage`: a last chunk with counts and no choices."""

    put: Put
    model: str
    text_of: Decode
    decode: Decode
    stops: Sequence[str]
    token_ids: bool
    usage: bool


class _Chunks:
    """The chunks of one reply of several choices."""

    def __init__(self, kind: str, facts: StreamFacts, choices: int) -> None:
        self._facts = facts
        self._shared = envelope(kind, facts.model)
        self._texts = [GrowingText(facts.text_of, facts.stops) for _ in range(choices)]
        self._ids: list[list[int]] = [[] for _ in range(choices)]
        self._seen = [0] * choices

    def _grow(self, index: int, tokens: Sequence[int]) -> str:
        self._seen[index] += len(tokens)
        self._ids[index] += tokens
        return self._texts[index].add(tokens)

    def _rest(self, index: int, choice: Choice) -> str:
        self._ids[index] += choice.tokens[self._seen[index] :]
        return self._texts[index].rest(choice)

    def _put(self, index: int, end: Choice | None = None, **fields: Any) -> None:
        entry: dict[str, Any] = {"index": index, "logprobs": None, "finish_reason": None, **fields}
        if self._facts.token_ids:
            entry["token_ids"], self._ids[index] = self._ids[index], []
        if end is not None:
            entry.setdefault("stop_reason", end.stop_reason)
            if end.stop_reason is None:
                del entry["stop_reason"]
        self._send([entry])

    def _send(self, entries: Sequence[dict[str, Any]], **more: object) -> None:
        told = {"usage": None} if self._facts.usage else {}
        self._facts.put({**self._shared, "choices": entries, **told, **more})

    def _count(self, prompt_tokens: int, choices: Sequence[Choice]) -> None:
        if self._facts.usage:
            self._send([], usage=usage(prompt_tokens, choices))


class ChatChunks(_Chunks):
    """A chat completion's: `begin`, then `told` for each token, then `end`."""

    def __init__(
        self, facts: StreamFacts, choices: int, prompt: Sequence[int], tools: ToolUse
    ) -> None:
        super().__init__("chat.completion.chunk", facts, choices)
        self._prompt = list(prompt)
        self._parts = [ReplyParts(prompt, index, tools) for index in range(choices)]

    def begin(self) -> None:
        """Say who speaks, before the first token; and the prompt, where ids are wanted."""
        more = {"prompt_token_ids": self._prompt} if self._facts.token_ids else {}
        opening = {"role": "assistant", "content": ""}
        entries = [
            {"index": index, "delta": opening, "logprobs": None, "finish_reason": None}
            for index in range(len(self._texts))
        ]
        self._send(entries, **more)

    def told(self, index: int, tokens: Sequence[int]) -> None:
        for delta in self._parts[index].add(self._grow(index, tokens)):
            self._put(index, delta=delta)

    def end(self, choices: Sequence[Choice]) -> None:
        for index, choice in enumerate(choices):
            parts = self._parts[index]
            *others, last = [*parts.add(self._rest(index, choice)), *parts.end()] or [{}]
            for delta in others:
                self._put(index, delta=delta)
            self._put(
                index,
                end=choice,
                delta=last,
                logprobs=chat_scores(choice, self._facts.decode),
                finish_reason=parts.finish_reason(choice),
            )
        self._count(len(self._prompt), choices)


class CompletionChunks(_Chunks):
    """Those of the text completions of one request: the choices of its prompts, one after the
    other."""

    def __init__(self, facts: StreamFacts, choices: int) -> None:
        super().__init__("text_completion", facts, choices)

    def hearer(self, first: int) -> Callable[[int, Sequence[int]], None]:
        """Hears the choices of a prompt, the first of which has this index."""

        def told(index: int, tokens: Sequence[int]) -> None:
            text = self._grow(first + index, tokens)
            if text:
                self._put(first + index, text=text)

        return told

    def echo(self, index: int, prompt: Sequence[int], text: str) -> None:
        """The text of a prompt that is to be repeated, before the choice itself."""
        more = {"prompt_token_ids": list(prompt)} if self._facts.token_ids else {}
        self._put(index, None, text=text, **more)

    def end(
        self, first: int, choices: Sequence[Choice], echoed: Echo | None, *, logprobs: bool
    ) -> None:
        """The ends of a prompt's choices."""
        before = () if echoed is None else echoed[1]
        for index, choice in enumerate(choices, start=first):
            scores = [*before, *choice.scores]
            self._put(
                index,
                end=choice,
                text=self._rest(index, choice),
                logprobs=completion_scores(scores, self._facts.decode) if logprobs else None,
                finish_reason=choice.finish_reason,
            )

    def count(self, prompt_tokens: int, choices: Sequence[Choice]) -> None:
        """The counts of the whole request, where they are wanted."""
        self._count(prompt_tokens, choices)
