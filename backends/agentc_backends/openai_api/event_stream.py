"""A reply in server-sent events: each is written when it comes, and nobody works for a client that
has gone.

Neighbours: `chunks.py` (what the events hold), `application.py` (the user), `replies.py`.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agentc_backends.openai_api.replies import as_json, error_body
from agentc_backends.openai_api.text_model import ReplyFailedError, ServerStoppedError
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
