"""Middleware inside vLLM's server: the token on every route, unknown request fields refused,
functions shown under every chat format and control tokens in texts kept as text
(`conversations.py`).

vLLM guards only /v1 and ignores fields that it does not know; contracts.md, section 5, promises
otherwise. Named by `--middleware` on the server's command line.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentc_backends.openai_api.access import session_of, with_session_header
from agentc_backends.openai_api.requests import MAX_BODY_BYTES, require_bounded
from agentc_backends.openai_api.values import ApiError, parse_body
from agentc_backends.servers.vllm.conversations import (
    FunctionTexts,
    PromptTokens,
    has_function_texts,
)
from agentc_backends.servers.vllm.job_serve import served_model

_HEALTH = "/health"
_OPEN_PATHS = (_HEALTH,)
_CHAT = "/v1/chat/completions"
_CONVERSATIONS = (_CHAT, "/tokenize")


class Gate:
    """Made by the server, which passes the application alone; the token is AGENTC_TOKEN."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        token = os.environ.get("AGENTC_TOKEN") or None
        self._token = None if token is None else token.encode()
        self._known = _declared_fields()
        model = served_model(sys.argv)
        self._functions = None if model is None else FunctionTexts(model)
        self._prompts = None if model is None else PromptTokens(model)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            session = self._session(scope)
            if session is None:
                refusal = _error(401, "a valid token is required", "invalid_api_key")
                await refusal(scope, receive, send)
                return
            send = with_session_header(session, send)
            read = scope["path"] in self._known or scope["path"] in _CONVERSATIONS
            if read and scope["method"] == "POST":
                body = await _read(receive)
                try:
                    shown = self._admit(scope["path"], body)
                except ApiError as error:
                    wrong = _error(error.status, error.message, error.code)
                    await wrong(scope, receive, send)
                    return
                if shown is not body:
                    scope = _of_length(scope, len(shown))
                receive = _replayed(shown, receive)
            elif scope["path"] == _HEALTH:
                await _answer_of_engine(scope)
        await self._app(scope, receive, send)

    def _session(self, scope: Scope) -> bytes | None:
        """That of the request's key; None for a stranger's."""
        if self._token is None or scope["path"] in _OPEN_PATHS:
            return b""
        return session_of(dict(scope["headers"]).get(b"authorization", b""), self._token)

    def _admit(self, path: str, body: bytes) -> bytes:
        """What vLLM is given of a request. Raises ApiError."""
        if len(body) > MAX_BODY_BYTES:
            raise ApiError(413, f"the body is over {MAX_BODY_BYTES} bytes", "too_large")
        fields = parse_body(body)
        if not isinstance(fields, dict):
            return body
        unknown = sorted(set(fields) - self._known[path]) if path in self._known else []
        if unknown:
            raise ApiError(400, f"unsupported fields: {', '.join(unknown)}", "unsupported_field")
        require_bounded(fields)
        if self._functions is None or path not in _CONVERSATIONS:
            return body
        return self._conversation(path, fields) or body

    def _conversation(self, path: str, fields: dict[str, Any]) -> bytes | None:
        """A conversation with functions as texts, or with the tokens of its prompt; None where vLLM
        renders it as it is. Raises ApiError."""
        assert self._functions is not None
        assert self._prompts is not None
        written = self._functions.rewrite(fields, replies=path == _CHAT)
        shown = fields if written is None else written
        rendered = written is None and has_function_texts(fields)
        handed = self._prompts.with_tokens(shown, rendered=rendered)
        changed = written if handed is None else handed
        return None if changed is None else json.dumps(changed).encode()


def _of_length(scope: Scope, length: int) -> Scope:
    """The request's scope with the length of another body."""
    kept = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
    return {**scope, "headers": [*kept, (b"content-length", str(length).encode())]}


async def _answer_of_engine(scope: Scope) -> None:
    """Wait until the engine answers a question, which it does between two passes of its model: a
    worker that hangs keeps a health check waiting. vLLM itself only knows whether the
    process lives; of a dead one it says so."""
    engine = getattr(getattr(scope.get("app"), "state", None), "engine_client", None)
    if engine is not None:
        with suppress(Exception):
            await engine.is_sleeping()


def _declared_fields() -> dict[str, frozenset[str]]:
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
