"""A reply in server-sent events, in OpenAI's chunks, while it is made; nothing is computed for a
client that has gone.

Texts and token ids are sent as they are drawn. Log-probabilities are in the last chunk of their
choice: they come from a pass of their own once the reply has ended, so that they are those of a
reply without streaming to the last bit."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentc_backends.openai_api.conversation import ToolUse
from agentc_backends.openai_api.replies import (
    Decode,
    ReplyParts,
    as_json,
    chat_scores,
    completion_scores,
    envelope,
    error_body,
    usage,
)
from agentc_backends.openai_api.text_model import (
    Choice,
    ReplyFailedError,
    ServerStoppedError,
    TokenScore,
)
from agentc_backends.openai_api.values import ApiError

Put: TypeAlias = Callable[[object], None]
"""Sends an object as an event; to be called on the loop."""

_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # of proxies, which would hold tokens back
)
_END = b"data: [DONE]\n\n"


class EventStream(Response):
    """Runs `produce`, which puts events, and cancels it once the client has closed the connection.
    An error of it is the last event, since the status has been said: OpenAI's clients raise it."""

    def __init__(self, produce: Callable[[Put], Awaitable[None]]) -> None:
        super().__init__()
        self._produce = produce
        self._waiting: list[bytes] = []
        self._news = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.ensure_future(self._produce(self._put))
        gone = asyncio.ensure_future(disconnected(receive))
        for task in (work, gone):
            task.add_done_callback(lambda _: self._news.set())
        try:
            head = {"type": "http.response.start", "status": 200, "headers": list(_HEADERS)}
            await send(head)
            while not gone.done():
                await self._news.wait()
                self._news.clear()
                ended = work.done()
                if ended:
                    self._waiting.append(_last(work))
                # What has come together goes out together: one write for a step of the engine.
                body = b"".join(self._waiting)
                self._waiting.clear()
                if body and not gone.done():
                    await send({"type": "http.response.body", "body": body, "more_body": not ended})
                if ended:
                    return
        finally:
            work.cancel()
            gone.cancel()

    def _put(self, event: object) -> None:
        self._waiting.append(_event(event))
        self._news.set()


async def disconnected(receive: Receive) -> None:
    """Returns once the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def reply_failed(error: ReplyFailedError) -> ApiError:
    """The refusal of a request whose reply could not be held to what it asked for."""
    return ApiError(400, str(error), "reply_failed")


def _last(work: asyncio.Future[None]) -> bytes:
    """What ends the stream of a work that is done."""
    error = None if work.cancelled() else work.exception()
    if error is None:
        return _END
    if isinstance(error, ApiError):
        return _event(error_body(error)) + _END
    if isinstance(error, ReplyFailedError):
        return _event(error_body(reply_failed(error))) + _END
    if isinstance(error, ServerStoppedError):
        stopped = ApiError(503, "the server is shutting down", "stopped")
        return _event(error_body(stopped)) + _END
    traceback.print_exception(error, file=sys.stderr)
    return _event(error_body(ApiError(500, "the server failed", "internal_error"))) + _END


def _event(content: object) -> bytes:
    return b"data: " + as_json(content) + b"\n\n"


# A token may hold a part of a character, and a text may be the beginning of a stop text: both are
# held back. The pieces and the rest are together the text of the whole reply, letter for letter.

_PART = "\ufffd"
"""What a decoder writes for bytes that are no character, or are not one yet."""


class GrowingText:
    """One choice. `text_of` decodes tokens of a reply (`TextModel.reply_text`)."""

    def __init__(self, text_of: Callable[[Sequence[int]], str], stops: Sequence[str]) -> None:
        self._text_of = text_of
        self._stops = tuple(stops)
        self._tokens: list[int] = []
        self._start = self._read = 0
        self._held = ""
        self._emitted = 0
        self._stopped = False

    def add(self, tokens: Sequence[int]) -> str:
        """The text that is certain with these tokens; often none."""
        self._tokens += tokens
        if self._stopped:
            return ""
        # Decoded behind the tokens of the last text: some decoders treat a beginning in a way of
        # its own.
        known = self._text_of(self._tokens[self._start : self._read])
        whole = self._text_of(self._tokens[self._start :])
        if whole.endswith(_PART) or not whole.startswith(known):
            return ""
        self._start, self._read = self._read, len(self._tokens)
        self._held += whole[len(known) :]
        cuts = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        self._stopped = bool(cuts)
        certain = min(cuts) if cuts else len(self._held) - self._beginning_of_a_stop()
        text, self._held = self._held[:certain], self._held[certain:]
        self._emitted += len(text)
        return text

    def rest(self, choice: Choice) -> str:
        """What is left to tell once the choice is known."""
        return choice.text[self._emitted :]

    def _beginning_of_a_stop(self) -> int:
        """Letters at the end that a stop text begins with, the most of them."""
        longest = 0
        for stop in self._stops:
            for size in range(min(len(stop) - 1, len(self._held)), longest, -1):
                if self._held.endswith(stop[:size]):
                    longest = size
                    break
        return longest


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
        counts = {"usage": None} if self._facts.usage else {}
        self._facts.put({**self._shared, "choices": entries, **counts, **more})

    def _count(self, prompt_tokens: int, choices: Sequence[Choice]) -> None:
        if self._facts.usage:
            self._send([], usage=usage(prompt_tokens, choices))


class ChatChunks(_Chunks):
    """A chat completion's: `begin`, then `add` for each token, then `end`."""

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

    def add(self, index: int, tokens: Sequence[int]) -> None:
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

        def add(index: int, tokens: Sequence[int]) -> None:
            text = self._grow(first + index, tokens)
            if text:
                self._put(first + index, text=text)

        return add

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
