"""Lets only holders of the run's token reach a server; wraps the one of `application.py`.

The token comes as a bearer token, or as the password of HTTP's basic authentication with any
name: that is how clients which know addresses only can send it (`http://any:TOKEN@host:port`).
"""

from __future__ import annotations

import base64
import binascii
import hmac

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from agentc_backends.environments.server.wire import JsonReply

_OPEN_PATHS = ("/health",)


class TokenGate:
    """Answers 401, before the body is read or a WebSocket opened, to a request without it."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._may_pass(scope):
            await self._app(scope, receive, send)
            return
        headers = {"WWW-Authenticate": "Bearer"}
        reply = JsonReply({"error": "a valid token is required"}, 401, headers)
        if scope["type"] == "http":
            await reply(scope, receive, send)
        else:
            await WebSocket(scope, receive, send).send_denial_response(reply)

    def _may_pass(self, scope: Scope) -> bool:
        if scope["type"] == "http" and scope["path"] in _OPEN_PATHS:
            return True
        header = dict(scope["headers"]).get(b"authorization", b"")
        return hmac.compare_digest(_offered(header), self._expected)


def _offered(header: bytes) -> bytes:
    """The token that a header holds; empty for none."""
    scheme, _, value = header.partition(b" ")
    if scheme.lower() == b"bearer":
        return value.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""
