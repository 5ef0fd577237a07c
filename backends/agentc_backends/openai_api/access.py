"""Lets only holders of the run's token reach a server; wraps the application.

A key may name a session behind the token, `TOKEN:SESSION`, so that a harness of others, which can
set an API key and nothing else, says for which episode it asks. `servers/vllm/gate.py` reads keys
by the same function.
"""

from __future__ import annotations

import hmac
import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentc_backends.openai_api.replies import error_reply
from agentc_backends.openai_api.values import ApiError

SESSION_HEADER = b"x-agentc-session"
"""Of replies: the session that the key of the request named."""
_OPEN_PATHS = ("/health",)
_SESSION = re.compile(rb"[A-Za-z0-9._-]{1,128}")


class TokenGate:
    """Answers 401, before the body is read, to a request without the bearer token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in _OPEN_PATHS:
            session = session_of(dict(scope["headers"]).get(b"authorization", b""), self._token)
            if session is None:
                refusal = ApiError(401, "a valid token is required", "invalid_api_key")
                await error_reply(refusal)(scope, receive, send)
                return
            send = with_session_header(session, send)
        await self._app(scope, receive, send)


def session_of(offered: bytes, token: bytes) -> bytes | None:
    """The session that a header `Authorization` names; empty where it holds the token alone, None
    where it does not hold it."""
    expected = b"Bearer " + token
    held = hmac.compare_digest(offered[: len(expected)], expected)
    rest = offered[len(expected) :]
    if not held or (rest and not (rest[:1] == b":" and _SESSION.fullmatch(rest[1:]))):
        return None
    return rest[1:]


def with_session_header(session: bytes, send: Send) -> Send:
    """Sends replies that say for which session they are."""
    if not session:
        return send

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (SESSION_HEADER, session)]
            message = {**message, "headers": headers}
        await send(message)

    return named
