"""An encoder of pictures that an environment asks by itself, found as `asked_model.py` finds a
model."""

from __future__ import annotations

from agentc_backends.clients.embeddings import EmbeddingClient
from agentc_backends.clients.errors import ServiceError
from agentc_backends.clients.leased import embedding_client
from agentc_backends.environments.server.asked_loop import AskedLoop
from agentc_backends.environments.server.asked_model import asked_lease
from agentc_backends.environments.server.environment import EnvironmentFailure

_MOST_AT_ONCE = 8
_ASKED = "the encoder that the environment asks"


class AskedEncoder:
    """The encoder of a role, for threads that wait. It is looked for with the first request: a
    world that only tells of its tasks needs none."""

    def __init__(self, role: str = "scorer") -> None:
        self._role = role
        self._loop = AskedLoop()
        self._client: EmbeddingClient | None = None

    def features(self, picture: bytes) -> tuple[float, ...]:
        """Of a picture. Raises EnvironmentFailure: the episode is void."""
        try:
            return self._loop.wait_for(self._features(picture))
        except ServiceError as error:
            raise EnvironmentFailure(f"{_ASKED}: {error}") from error

    async def _features(self, picture: bytes) -> tuple[float, ...]:
        if self._client is None:  # here, so that what it holds belongs to this loop
            try:
                lease = asked_lease(self._role)
            except (ValueError, OSError) as error:
                raise EnvironmentFailure(f"{_ASKED}: {error}") from error
            self._client = embedding_client(lease, concurrency=_MOST_AT_ONCE)
        return await self._client.features(picture)
