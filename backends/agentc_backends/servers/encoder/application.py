"""The routes of an encoder's server: `/v1/models` as model servers have it, and features of
pictures.

Neighbours: `served_encoder.py`; `openai_api`, whose refusals and token it has.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from agentc_backends.openai_api.access import TokenGate
from agentc_backends.openai_api.replies import JsonReply, error_reply
from agentc_backends.openai_api.values import ApiError, refuse_unknown, require_model
from agentc_backends.openai_api.wire import read_object
from agentc_backends.servers.encoder.served_encoder import PictureError

MOST_PICTURES = 16
_FIELDS = frozenset({"model", "images"})


class PictureModel(Protocol):
    """What is served."""

    root: str

    def features(self, picture: bytes) -> list[float]:
        """Raises PictureError."""


def create_app(encoder: PictureModel, served_name: str, *, token: str | None = None) -> ASGIApp:
    """The application; with a token every route but /health demands it."""

    async def health(request: Request) -> object:
        return {"status": "ok"}

    async def models(request: Request) -> object:
        entry = {"id": served_name, "object": "model", "owned_by": "agentc", "root": encoder.root}
        return {"object": "list", "data": [entry]}

    async def embeddings(request: Request) -> object:
        body = await read_object(request)
        refuse_unknown(body, _FIELDS)
        require_model(body, served_name)
        found = []
        for index, picture in enumerate(_pictures(body)):
            try:
                features = await asyncio.to_thread(encoder.features, picture)
            except PictureError as error:
                raise _refused(index, str(error)) from None
            found.append({"object": "embedding", "index": index, "embedding": features})
        return {"object": "list", "model": served_name, "data": found}

    app = Starlette(
        routes=[
            Route("/health", _replying(health), methods=["GET"]),
            Route("/v1/models", _replying(models), methods=["GET"]),
            Route("/v1/embeddings", _replying(embeddings), methods=["POST"]),
        ]
    )
    return app if token is None else TokenGate(app, token)


def _pictures(body: Mapping[str, Any]) -> list[bytes]:
    images = body.get("images")
    if not isinstance(images, list) or not 0 < len(images) <= MOST_PICTURES:
        raise ApiError(
            400, f"`images` has to be a list of 1 to {MOST_PICTURES}", "invalid_value", "images"
        )
    found = []
    for index, written in enumerate(images):
        try:
            found.append(base64.b64decode(written, validate=True))
        except (TypeError, ValueError, binascii.Error):
            raise _refused(index, "it is no base64") from None
    return found


def _refused(index: int, reason: str) -> ApiError:
    return ApiError(400, f"images[{index}]: {reason}", "invalid_value", "images")


def _replying(
    produce: Callable[[Request], Awaitable[object]],
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return JsonReply(await produce(request))
        except ApiError as error:
            return error_reply(error)

    return endpoint
