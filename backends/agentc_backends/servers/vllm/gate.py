"""Middleware inside vLLM's server: the token on every route, unknown request fields refused.

vLLM guards only /v1 and ignores fields that it does not know; contracts.md, section 5, promises
otherwise. Named by `--middleware` on the server's command line.
"""

from __future__ import annotations

import json
import os
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentc_backends.servers.openai_api.access import naming, session_of
from agentc_backends.servers.openai_api.values import ApiError
from agentc_backends.servers.openai_api.wire import MAX_BODY_BYTES, require_bounded

_OPEN_PATHS = ("/health",)


class Gate:
    """Made by the server, which passes the application alone; the token is AGENTC_TOKEN."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        token = os.environ.get("AGENTC_TOKEN") or None
        self._token = None if token is None else token.encode()
        self._known = _known_fields()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            session = self._session(scope)
            if session is None:
                refusal = _error(401, "a valid token is required", "invalid_api_key")
                await refusal(scope, receive, send)
                return
            send = naming(session, send)
            if scope["path"] in self._known and scope["method"] == "POST":
                body = await _read(receive)
                receive = _replayed(body, receive)
                wrong = self._refuse_fields(scope["path"], body)
                if wrong is not None:
                    await wrong(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    def _session(self, scope: Scope) -> bytes | None:
        """That of the request's key; None for a stranger's."""
        if self._token is None or scope["path"] in _OPEN_PATHS:
            return b""
        return session_of(dict(scope["headers"]).get(b"authorization", b""), self._token)

    def _refuse_fields(self, path: str, body: bytes) -> JSONResponse | None:
        if len(body) > MAX_BODY_BYTES:
            return _error(413, f"the body is over {MAX_BODY_BYTES} bytes", "too_large")
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError):
            return _error(400, "the body is not JSON", "invalid_json")
        unknown = sorted(set(fields) - self._known[path]) if isinstance(fields, dict) else []
        if not unknown:
            return _refuse_excess(fields) if isinstance(fields, dict) else None
        return _error(400, f"unsupported fields: {', '.join(unknown)}", "unsupported_field")


def _refuse_excess(fields: dict[str, Any]) -> JSONResponse | None:
    try:
        require_bounded(fields)
    except ApiError as error:
        return _error(error.status, error.message, error.code)
    return None


def _known_fields() -> dict[str, frozenset[str]]:
    """Fields that this vLLM declares, by route."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest

    return {
        "/v1/chat/completions": _declared(ChatCompletionRequest),
        "/v1/completions": _declared(CompletionRequest),
    }


def _declared(model: Any) -> frozenset[str]:
    names = set(model.model_fields)
    aliases = {field.alias for field in model.model_fields.values() if field.alias}
    return frozenset(names | aliases)


async def _read(receive: Receive) -> bytes:
    data = bytearray()
    while True:
        message = await receive()
        data += message.get("body", b"")
        if not message.get("more_body") or len(data) > MAX_BODY_BYTES:
            return bytes(data)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then whatever comes (a disconnect)."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _error(status: int, message: str, code: str) -> JSONResponse:
    body = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return JSONResponse({"error": body}, status)
