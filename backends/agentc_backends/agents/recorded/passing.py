"""Passes one request on and records its reply: a whole one, or a stream event by event.

Neighbours: `recorder.py`, which says what is asked; `event_reader.py`, which puts a stream
together; `shown.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentc_backends.agents.recorded.event_reader import DONE, EventReader, events_of
from agentc_backends.agents.recorded.exchange import Message, exchange_of
from agentc_backends.agents.recorded.session import RecordedSession
from agentc_backends.agents.recorded.shown import WhatIsShown
from agentc_backends.agents.recorded.upstream import LeasedModel
from agentc_backends.clients.errors import EchoedSecretError, InfrastructureError
from agentc_backends.http_library import httpx2
from agentc_backends.openai_api.replies import JsonReply, as_json, error_body, error_reply
from agentc_backends.openai_api.streaming import disconnected
from agentc_backends.openai_api.values import ApiError

_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """A request of a program: what it said (`asked`, `tools`), and what the server is `sent`."""

    upstream: LeasedModel
    session: RecordedSession
    asked: Sequence[Message]
    tools: Sequence[Mapping[str, Any]]
    sent: Mapping[str, Any]
    shown: WhatIsShown

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
        return JsonReply(self.shown.of(answer))

    def record(self, answer: Mapping[str, Any], *, heard: bool = True) -> None:
        """Keep a whole reply. One that nobody `heard` is none: its program asks again, and goes on
        with the second. Raises ApiError where it is of no use."""
        try:
            self.upstream.guard.inspect(answer, "the model server")
            exchange = exchange_of(
                self.asked, self.tools, answer, max_tokens=self.sent["max_tokens"]
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


class PassedStream(Response):
    """A streamed reply; one that was cut off, by either side, is not recorded but noted."""

    def __init__(self, passing: Passing) -> None:
        super().__init__()
        self._passing = passing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        passing = self._passing
        gone = asyncio.ensure_future(disconnected(receive))
        begun = False
        try:
            async with passing.upstream.chat(passing.sent, passing.session.name) as response:
                if response.status_code != 200:
                    content = await response.aread()
                    refusal = passing.refusal(response.status_code, content)
                    await refusal(scope, receive, send)
                    return
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                begun = True
                passing.session.cut_off.append(tuple(passing.asked))  # until it is recorded
                await self._events(response, gone, send)
        except httpx2.HTTPError as error:
            await self._broken(passing.lost(error), begun, scope, receive, send)
        except ApiError as error:
            await self._broken(error, begun, scope, receive, send)
        finally:
            gone.cancel()

    async def _events(
        self, response: httpx2.Response, gone: asyncio.Future[None], send: Send
    ) -> None:
        passing, reader = self._passing, EventReader()
        async for data in events_of(response.aiter_lines()):
            if gone.done():
                return
            try:
                event = reader.add(data)
            except (ValueError, TypeError, AttributeError) as error:
                raise passing.useless(str(error)) from error
            if event is None:
                # Before the program learns of the end, for then it may ask the next.
                passing.record(reader.whole())
                await _put(send, DONE.encode(), last=True)
                return
            await _put(send, as_json(passing.shown.of(event)))
            if reader.failed is not None:
                passing.session.failed = reader.failed
                await _put(send, DONE.encode(), last=True)
                return
        raise passing.useless("the stream ended before its reply did")

    async def _broken(
        self, error: ApiError, begun: bool, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if begun:
            await _put(send, as_json(error_body(error)))
            await _put(send, DONE.encode(), last=True)
        else:
            await error_reply(error)(scope, receive, send)


async def _put(send: Send, data: bytes, *, last: bool = False) -> None:
    body = b"data: " + data + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": not last})
