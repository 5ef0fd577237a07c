"""Passes one request of a program on to the leased model server and records the reply: a whole one,
or a stream event by event. The program receives the server's own reply, with tokens and
log-probabilities where it requested them, and not where only the recorder did."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentc_backends.agents.recording.exchange import Message, RecordedSession, read_exchange
from agentc_backends.clients.errors import EchoedSecretError, InfrastructureError, read_refusal
from agentc_backends.clients.leases import token_of
from agentc_backends.clients.request_policy import RateLimits, RequestGate, rank_replicas
from agentc_backends.clients.transport import Guard, Timeouts
from agentc_backends.openai_api.replies import JsonReply, as_json, error_body, error_reply
from agentc_backends.openai_api.streaming import disconnected
from agentc_backends.openai_api.values import ApiError

_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayedRequest:
    """A request of a program: what it said (`messages`, `tools`), and what the server is `sent`."""

    upstream: LeasedModel
    session: RecordedSession
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]]
    sent: Mapping[str, Any]
    reply_filter: ReplyFilter

    async def whole(self, request: Request) -> Response:
        """The reply, or the server's refusal. Raises ApiError where the server fails."""
        try:
            async with self.upstream.chat(self.sent, self.session.name) as response:
                content, status = await response.aread(), response.status_code
        except httpx2.HTTPError as error:
            raise self.lost(error) from error
        if status != 200:
            return self.refusal(status, content)
        try:
            answer = json.loads(content)
        except ValueError as error:
            raise self.useless(str(error)) from error
        gone = await request.is_disconnected()
        self.record(answer, heard=not gone)
        return JsonReply(self.reply_filter.of(answer))

    def record(self, answer: Mapping[str, Any], *, heard: bool = True) -> None:
        """Keep a whole reply. One that nobody `heard` is none: its program asks again, and goes on
        with the second. Raises ApiError where it is of no use."""
        try:
            self.upstream.guard.inspect(answer, "the model server")
            exchange = read_exchange(
                self.messages, self.tools, answer, max_tokens=self.sent["max_tokens"]
            )
        except (ValueError, EchoedSecretError, InfrastructureError) as error:
            raise self.useless(str(error)) from error
        if heard:
            self.session.answered(exchange)

    def refusal(self, status: int, content: bytes) -> Response:
        """The server's own words, from which a program may learn what to do."""
        self.session.refused(status, content)
        text = self.upstream.guard.clean(content.decode("utf-8", "replace"))
        return Response(text, status, media_type="application/json")

    def lost(self, error: Exception) -> ApiError:
        self.session.failed = f"the model server: {error or type(error).__name__}"
        return ApiError(502, "the model server does not answer", "bad_gateway")

    def useless(self, why: str) -> ApiError:
        self.session.failed = why
        return ApiError(502, "the model server's reply is of no use", "bad_gateway")


class RelayedStream(Response):
    """A streamed reply; one that was cut off, by either side, is not recorded but noted."""

    def __init__(self, relayed: RelayedRequest) -> None:
        super().__init__()
        self._relayed = relayed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        relayed = self._relayed
        gone = asyncio.ensure_future(disconnected(receive))
        begun = False
        try:
            async with relayed.upstream.chat(relayed.sent, relayed.session.name) as response:
                if response.status_code != 200:
                    content = await response.aread()
                    refusal = relayed.refusal(response.status_code, content)
                    await refusal(scope, receive, send)
                    return
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                begun = True
                relayed.session.cut_off.append(tuple(relayed.messages))  # until it is recorded
                await self._events(response, gone, send)
        except httpx2.HTTPError as error:
            await self._broken(relayed.lost(error), begun, scope, receive, send)
        except ApiError as error:
            await self._broken(error, begun, scope, receive, send)
        finally:
            gone.cancel()

    async def _events(
        self, response: httpx2.Response, gone: asyncio.Future[None], send: Send
    ) -> None:
        relayed, reader = self._relayed, EventReader()
        async for data in stream_events(response.aiter_lines()):
            if gone.done():
                return
            try:
                event = reader.add(data)
            except (ValueError, TypeError, AttributeError) as error:
                raise relayed.useless(str(error)) from error
            if event is None:
                # Before the program learns of the end, for then it may ask the next.
                relayed.record(reader.whole())
                await _send_event(send, DONE.encode(), last=True)
                return
            await _send_event(send, as_json(relayed.reply_filter.of(event)))
            if reader.failed is not None:
                relayed.session.failed = reader.failed
                await _send_event(send, DONE.encode(), last=True)
                return
        raise relayed.useless("the stream ended before its reply did")

    async def _broken(
        self, error: ApiError, begun: bool, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if begun:
            await _send_event(send, as_json(error_body(error)))
            await _send_event(send, DONE.encode(), last=True)
        else:
            await error_reply(error)(scope, receive, send)


async def _send_event(send: Send, data: bytes, *, last: bool = False) -> None:
    body = b"data: " + data + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": not last})


_PATH = "/v1/chat/completions"
_LETTERS_PER_TOKEN = 4


class LeasedModel:
    """A server, or its copies: who asks with the same `affinity` meets the same copy. The rates of
    a remote endpoint are kept; trying again is left to the program's own client."""

    def __init__(self, lease: Mapping[str, Any], *, concurrency: int) -> None:
        settings: Mapping[str, Any] = lease.get("client") or {}
        remote = "log" not in lease
        token = token_of(lease)
        urls = lease.get("urls") or [lease["url"]]
        self._urls = [url.rstrip("/").removesuffix("/v1") for url in urls]
        self.model: str = lease["model"]
        self.guard = Guard(token if remote else None)
        most = min(concurrency, settings.get("concurrency") or concurrency)
        self._gate = RequestGate(
            RateLimits(
                requests_per_minute=settings.get("requests_per_minute"),
                tokens_per_minute=settings.get("tokens_per_minute"),
                concurrency=most,
            )
        )
        waits = Timeouts()
        self._http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx2.Timeout(waits.read_s, connect=waits.connect_s),
            # Proxies are for what is not of this run.
            trust_env=remote,
        )

    async def close(self) -> None:
        await self._http.aclose()

    @asynccontextmanager
    async def chat(self, body: Mapping[str, Any], affinity: str) -> AsyncIterator[httpx2.Response]:
        """The response to a chat request. One whose prompt leaves less room than its `max_tokens`
        is asked again with what is left. Raises httpx2.HTTPError."""
        async with self._request(body, affinity) as response:
            length = None
            if response.status_code >= 400:
                length = read_refusal(await response.aread(), body.get("max_tokens"))
            if length is None or not length.fits or body.get("max_tokens") is None:
                yield response
                return
        async with self._request({**body, "max_tokens": length.room}, affinity) as response:
            yield response

    @asynccontextmanager
    async def _request(
        self, body: Mapping[str, Any], affinity: str
    ) -> AsyncIterator[httpx2.Response]:
        url = rank_replicas(self._urls, affinity)[0] + _PATH
        content = json.dumps(body).encode()
        async with (
            self._gate.admit(len(content) / _LETTERS_PER_TOKEN),
            self._http.stream(
                "POST", url, content=content, headers={"Content-Type": "application/json"}
            ) as response,
        ):
            yield response


DONE = "[DONE]"


async def stream_events(lines: AsyncIterator[str]) -> AsyncIterator[str]:
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


@dataclass(frozen=True, slots=True)
class ReplyFilter:
    """What a request asked for."""

    token_ids: bool
    logprobs: bool

    @classmethod
    def requested_by(cls, body: Mapping[str, Any]) -> ReplyFilter:
        return cls(bool(body.get("return_token_ids")), bool(body.get("logprobs")))

    def of(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """A reply, or an event of one, without the rest."""
        kept = dict(answer)
        if not self.token_ids:
            kept.pop("prompt_token_ids", None)
        if "choices" in kept:
            kept["choices"] = [self._choice(choice) for choice in kept["choices"]]
        return kept

    def _choice(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        kept = dict(choice)
        if not self.token_ids:
            kept.pop("token_ids", None)
        if not self.logprobs and "logprobs" in kept:
            kept["logprobs"] = None
        return kept
