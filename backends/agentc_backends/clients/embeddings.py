"""EmbeddingClient: features of pictures, from a server of ours that makes them (`servers/encoder`).

Neighbours: `chat.py`, its sibling; `transport.py`, which sends.
"""

from __future__ import annotations

import base64
from typing import Any

from agentc_backends.clients.errors import InfrastructureError
from agentc_backends.clients.transport import Transport


class EmbeddingClient:
    """An asynchronous client of one encoder. Its calls raise InfrastructureError and
    BadRequestError."""

    def __init__(self, transport: Transport, model: str) -> None:
        self._transport, self._model = transport, model

    async def features(self, picture: bytes) -> tuple[float, ...]:
        """Of one picture, as the model projects them."""
        body = {"model": self._model, "images": [base64.b64encode(picture).decode()]}
        answer: Any = await self._transport.call("POST", "/v1/embeddings", body)
        match answer:
            case {"data": [{"embedding": [_, *_] as found}]} if all(
                isinstance(each, int | float) for each in found
            ):
                return tuple(map(float, found))
        raise InfrastructureError("/v1/embeddings answers without features")
