"""Lets only holders of the run's token reach a server; wraps the application."""

from __future__ import annotations

import hmac

from starlette.types import ASGIApp, Receive, Scope, Send

from agentc_backends.servers.openai_api.replies import error_reply
from agentc_backends.servers.openai_api.values import ApiError

_OPEN_PATHS = ("/health",)


class TokenGate:
    """Answers 401, before the body is read, to a request without the bearer token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = b"Bearer " + token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in _OPEN_PATHS:
            offered = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(offered, self._expected):
                refusal = ApiError(401, "a valid token is required", "invalid_api_key")
                await error_reply(refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)
