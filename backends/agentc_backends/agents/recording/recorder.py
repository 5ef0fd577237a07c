"""A server of the job's own, on loopback, between external programs and the leased model server: it
passes chat requests on (`relay.py`) and records them by episode.

Whatever a program requests, replies are drawn as the stage says (`decode`) and by the stage's
seeds; tokens and log-probabilities are requested and kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from agentc_backends.agents.common.seeds import turn_seed
from agentc_backends.agents.recording.exchange import RecordedSession
from agentc_backends.agents.recording.relay import (
    LeasedModel,
    RelayedRequest,
    RelayedStream,
    ReplyFilter,
)
from agentc_backends.openai_api.access import session_of
from agentc_backends.openai_api.conversation import read_messages
from agentc_backends.openai_api.replies import JsonReply, error_reply
from agentc_backends.openai_api.requests import read_object
from agentc_backends.openai_api.values import ApiError
from agentc_backends.server_process import listen

_DECODING = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed")


class Recorder:
    """Sessions by their names. `url` is where programs find the server, without `/v1`."""

    def __init__(self, upstream: LeasedModel, decode: Mapping[str, Any], *, tells: bool) -> None:
        self.url = ""
        self._upstream = upstream
        self._decode = {name: decode[name] for name in ("temperature", "top_p", "max_tokens")}
        if decode["stop"]:
            self._decode["stop"] = list(decode["stop"])
        self._tells = tells
        self._token = secrets.token_urlsafe(24)
        self._sessions: dict[str, RecordedSession] = {}
        """By the part of their keys behind the token, which no other program can guess."""
        self._opened = 0

    def open(self, *, seed: int, most_replies: int | None = None) -> RecordedSession:
        """Begin to record an episode."""
        self._opened += 1
        secret = secrets.token_urlsafe(24)
        session = RecordedSession(
            name=f"episode-{self._opened}",
            key=f"{self._token}:{secret}",
            seed=seed,
            most_replies=most_replies,
        )
        self._sessions[secret] = session
        return session

    def close(self, session: RecordedSession) -> None:
        """Nothing is answered or recorded under its key any more."""
        self._sessions.pop(session.key.rpartition(":")[2], None)

    def session_of(self, request: Request) -> RecordedSession:
        """Whose key a request has. Raises ApiError (401)."""
        offered = request.headers.get("authorization", "").encode()
        secret = session_of(offered, self._token.encode())
        session = self._sessions.get((secret or b"").decode())
        if session is None:
            raise ApiError(401, "a valid key is required", "invalid_api_key")
        return session

    async def models(self, request: Request) -> Response:
        """GET /v1/models."""
        self.session_of(request)
        entry = {"id": self._upstream.model, "object": "model", "owned_by": "agentc"}
        return JsonReply({"object": "list", "data": [entry]})

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        session = self.session_of(request)
        body = await read_object(request)
        asked = read_messages(body)
        tools: Sequence[Mapping[str, Any]] = body.get("tools") or ()
        if body.get("n", 1) != 1:
            raise ApiError(400, "an episode has one reply to a request", "invalid_value", "n")
        session.unanswered = tuple(asked)  # until it is answered
        limit = session.most_replies
        if limit is not None and len(session.exchanges) >= limit:
            session.limited = True
            raise ApiError(400, f"the episode has had its {limit} replies", "turn_limit")
        session.overruled += self._overrules(body)
        relayed = RelayedRequest(
            upstream=self._upstream,
            session=session,
            messages=asked,
            tools=tools,
            sent=self._sent(body, session),
            reply_filter=ReplyFilter.requested_by(body),
        )
        return RelayedStream(relayed) if body.get("stream") else await relayed.whole(request)

    def _sent(self, body: Mapping[str, Any], session: RecordedSession) -> dict[str, Any]:
        kept = {name: value for name, value in body.items() if name not in _DECODING}
        seed = turn_seed(session.seed, len(session.exchanges))
        told = {"logprobs": True, "return_token_ids": True} if self._tells else {}
        return {**kept, "model": self._upstream.model, **self._decode, "seed": seed, **told}

    def _overrules(self, body: Mapping[str, Any]) -> bool:
        """Whether a request says something of decoding that the stage does not say, too."""
        ours = {"stop": [], **self._decode}
        ours["max_completion_tokens"] = ours["max_tokens"]
        given = {name: body[name] for name in _DECODING if name in body and name != "seed"}
        if isinstance(given.get("stop"), str):
            given["stop"] = [given["stop"]]
        return any(value != ours[name] for name, value in given.items())


@asynccontextmanager
async def open_recorder(
    lease: Mapping[str, Any],
    decode: Mapping[str, Any],
    *,
    concurrency: int,
    tells: bool = True,
    routes: Sequence[BaseRoute] = (),
) -> AsyncIterator[Recorder]:
    """A recorder before the model server of a lease, with `routes` beside its own. `decode` is the
    stage's: temperature, top_p, max_tokens, stop. `tells`: the server can tell tokens."""
    upstream = LeasedModel(lease, concurrency=concurrency)
    recorder = Recorder(upstream, decode, tells=tells)
    own = [
        Route("/v1/models", recorder.models),
        Route("/v1/chat/completions", recorder.chat, methods=["POST"]),
    ]
    app = Starlette(routes=[*own, *routes], exception_handlers={ApiError: _refused})
    try:
        async with serve_inside(app) as url:
            recorder.url = url
            yield recorder
    finally:
        await upstream.close()


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error_reply(error)


_GRACE_S = 1


class _Inside(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal ends the job as it would without a server."""
        yield


@contextlib.asynccontextmanager
async def serve_inside(app: ASGIApp) -> AsyncIterator[str]:
    """The address, `http://127.0.0.1:PORT`, while the context lasts."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        # A program is silent for as long as its model, or its own work, takes.
        timeout_keep_alive=600,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Inside(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()
