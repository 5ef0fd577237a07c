"""Reads requests and writes replies in the shapes of AgentGym's servers (which use FastAPI).

Every fault of a request becomes a `RequestError` with a status below 500
(503 while the server stops). Neighbours:
`server.py` (routes), `access.py` (token).
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

MAX_BODY_BYTES = 1 << 20
_MAX_INTEGER = 2**63


class RequestError(Exception):
    """The request cannot be served; `payload` is the reply's JSON."""

    def __init__(self, status: int, payload: Mapping[str, Any]) -> None:
        super().__init__(status, payload)
        self.status = status
        self.payload = payload


class JsonReply(Response):
    """JSON in ASCII, so that an action with a lone surrogate can still be quoted in a reply."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def invalid(kind: str, place: tuple[str, ...], message: str, value: object) -> RequestError:
    """A 422 in the shape that FastAPI gives it."""
    detail = {"type": kind, "loc": list(place), "msg": message, "input": value}
    return RequestError(422, {"detail": [detail]})


async def read_body(request: Request) -> dict[str, Any]:
    """The JSON object that every POST must carry."""
    data = await _read_bytes(request)
    if not data:
        raise invalid("missing", ("body",), "Field required", None)
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


def number(value: float) -> int | float:
    """A reward as AgentGym writes it: 0 and 1, not 0.0 and 1.0."""
    return int(value) if value == int(value) else value


def _missing(body: Mapping[str, Any], field: str) -> RequestError:
    return invalid("missing", ("body", field), "Field required", dict(body))


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is too large")
    return value
