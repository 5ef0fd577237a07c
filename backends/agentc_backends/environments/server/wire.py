"""Reads requests and writes replies in the shapes of AgentGym's servers (which use FastAPI), and
lets only holders of the run's token reach a server.

Every fault of a request becomes a `RequestError` with a status below 500 (503 while the server
stops)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from agentc_backends.environments.server.requests import RequestError, invalid

MAX_BODY_BYTES = 1 << 20
_MAX_INTEGER = 2**63
_LONGEST_NAME = 200


class JsonReply(Response):
    """JSON in ASCII, so that an action with a lone surrogate can still be quoted in a reply."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


async def read_body(request: Request, *, optional: bool = False) -> dict[str, Any] | None:
    """The JSON object that every POST must carry; None when an `optional` one is not there."""
    data = await _read_bytes(request)
    if not data:
        if optional:
            return None
        raise invalid("missing", ("body",), "Field required", None)
    return decoded(data)


def decoded(data: bytes | bytearray | str) -> dict[str, Any]:
    """A JSON object."""
    try:
        body = json.loads(data, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise invalid("json_invalid", ("body",), "JSON decode error", None) from error
    if not isinstance(body, dict):
        raise invalid("dict_type", ("body",), "Input should be a JSON object", None)
    return body


async def _read_bytes(request: Request) -> bytearray:
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > MAX_BODY_BYTES:
                raise RequestError(413, {"error": f"the body is over {MAX_BODY_BYTES} bytes"})
    except ClientDisconnect as error:
        raise RequestError(400, {"error": "the body is incomplete"}) from error
    except asyncio.CancelledError as error:
        # Only the server's shutdown cancels a request, and only one that waits here.
        raise RequestError(503, {"error": "the server is stopping"}) from error
    return data


def integer(body: Mapping[str, Any], field: str, default: int | None = None) -> int:
    value = body.get(field, default)
    if value is None:
        raise _missing(body, field)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= _MAX_INTEGER:
        raise invalid("int_type", ("body", field), "Input should be a valid integer", value)
    return value


def text(body: Mapping[str, Any], field: str) -> str:
    value = body.get(field)
    if value is None:
        raise _missing(body, field)
    if not isinstance(value, str):
        raise invalid("string_type", ("body", field), "Input should be a valid string", value)
    return value


def name(body: Mapping[str, Any], field: str) -> str | None:
    """A short text that may be absent."""
    if field not in body:
        return None
    value = text(body, field)
    if not 0 < len(value) <= _LONGEST_NAME:
        message = f"String should have 1 to {_LONGEST_NAME} characters"
        raise invalid("string_length", ("body", field), message, value[:_LONGEST_NAME])
    return value


def seconds(body: Mapping[str, Any], field: str, most: float) -> float:
    value = body.get(field)
    if value is None:
        raise _missing(body, field)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
        message = f"Input should be a number of seconds above 0 and at most {most:g}"
        raise invalid("seconds", ("body", field), message, value)
    return float(value)


def items(body: Mapping[str, Any], field: str, most: int) -> list[Any]:
    value = body.get(field)
    if value is None:
        raise _missing(body, field)
    if not isinstance(value, list) or len(value) > most:
        message = f"Input should be a list of at most {most} items"
        raise invalid("list_type", ("body", field), message, None)
    return value


def mapping(body: Mapping[str, Any], field: str) -> dict[str, Any]:
    value = body.get(field)
    if value is None:
        raise _missing(body, field)
    if not isinstance(value, dict):
        raise invalid("dict_type", ("body", field), "Input should be a JSON object", value)
    return value


def query_integer(request: Request, field: str) -> int:
    value = request.query_params.get(field)
    if value is None:
        raise invalid("missing", ("query", field), "Field required", None)
    if not (value.isascii() and value.isdigit() and len(value) < len(str(_MAX_INTEGER))):
        message = "Input should be a valid integer, unable to parse string as an integer"
        raise invalid("int_parsing", ("query", field), message, value)
    return int(value)


def _missing(body: Mapping[str, Any], field: str) -> RequestError:
    return invalid("missing", ("body", field), "Field required", dict(body))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is too large")
    return value


# The token comes as a bearer token, or as the password of HTTP's basic authentication with any
# name: clients that only know addresses send it that way (`http://any:TOKEN@host:port`).

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
