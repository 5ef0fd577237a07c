"""Model servers and encoders that an environment calls, found in the file that AGENTC_LEASES names.

The environment's declaration says so by `simulators`, its lease by `needs`; the model never sees
the agent's tokens, and the agent's process learns nothing of the model."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from agentc_backends.clients.chat import ChatClient, ChatReply, EmbeddingClient
from agentc_backends.clients.errors import ServiceError, message_without_quote
from agentc_backends.clients.leases import chat_client, embedding_client
from agentc_backends.environments.server.environment import EnvironmentFailure

LEASES_VARIABLE = "AGENTC_LEASES"
_MODEL_REQUESTS = 64
_MODEL = "the model that the environment calls"


def lease_of_role(role: str = "simulator") -> Mapping[str, Any]:
    """Where the server of a role is: `{"url", "token", "model", ...}`, as in a job's file. Raises
    ValueError where nobody has said."""
    place = os.environ.get(LEASES_VARIABLE)
    if place is None:
        raise ValueError(f"no {role}: {LEASES_VARIABLE} names no file, so nobody started one")
    found: Mapping[str, Any] | None = json.loads(Path(place).read_bytes()).get(role)
    if found is None:
        raise ValueError(f"no {role} in {place}")
    return found


def reply_text(reply: ChatReply) -> str:
    """What a model said, without blanks around it. Raises EnvironmentFailure where that is
    nothing: who talks with it could not tell that from an answer."""
    text = reply.text.strip()
    if not text:
        ends = "its limit of tokens" if reply.finish_reason == "length" else "its end at once"
        raise EnvironmentFailure(f"{_MODEL} says nothing ({ends})")
    return text


class ModelService:
    """The model server of a role, or its copies, for threads that wait for their replies. Requests
    of several threads are under way at once, within the limits that the lease states. It is looked
    for with the first request: a world that only tells of its tasks needs none."""

    def __init__(self, role: str = "simulator") -> None:
        self._role = role
        self._loop = LoopThread()
        self._client: ChatClient | None = None

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        seed: int | None = None,
        affinity: str = "",
    ) -> ChatReply:
        """The model's next message; of a model that sees, `content` may be parts as OpenAI's API
        has them. Calls of equal `affinity` meet the same copy. Raises
        EnvironmentFailure, without a word of the server's: the episode is void."""
        request = self._chat(
            messages,
            max_tokens=max_tokens,
            temperature=temperature,
            stop=stop,
            seed=seed,
            affinity=affinity,
        )
        try:
            return self._loop.wait_for(request)
        except ServiceError as error:
            # Its words may be the request's, which may hold what no agent is to know.
            failure = message_without_quote(error)
        # Not in the handler: a traceback would show what was said.
        raise EnvironmentFailure(f"{_MODEL}: {failure}")

    async def _chat(self, messages: Sequence[Mapping[str, Any]], **wanted: Any) -> ChatReply:
        if self._client is None:  # here, so that what it holds belongs to this loop
            try:
                lease = lease_of_role(self._role)
            except (ValueError, OSError) as error:
                raise EnvironmentFailure(f"{_MODEL}: {error}") from error
            self._client = chat_client(lease, concurrency=_MODEL_REQUESTS)
        return await self._client.chat(messages, **wanted)


_ENCODER_REQUESTS = 8
_ENCODER = "the encoder that the environment calls"


class EncoderService:
    """The encoder of a role, for threads that wait. It is looked for with the first request: a
    world that only tells of its tasks needs none."""

    def __init__(self, role: str = "scorer") -> None:
        self._role = role
        self._loop = LoopThread()
        self._client: EmbeddingClient | None = None

    def features(self, picture: bytes) -> tuple[float, ...]:
        """Of a picture. Raises EnvironmentFailure: the episode is void."""
        try:
            return self._loop.wait_for(self._features(picture))
        except ServiceError as error:
            raise EnvironmentFailure(f"{_ENCODER}: {error}") from error

    async def _features(self, picture: bytes) -> tuple[float, ...]:
        if self._client is None:  # here, so that what it holds belongs to this loop
            try:
                lease = lease_of_role(self._role)
            except (ValueError, OSError) as error:
                raise EnvironmentFailure(f"{_ENCODER}: {error}") from error
            self._client = embedding_client(lease, concurrency=_ENCODER_REQUESTS)
        return await self._client.features(picture)


_T = TypeVar("_T")


class LoopThread:
    """Starts with the first use; may be shared by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def wait_for(self, asked: Coroutine[Any, Any, _T]) -> _T:
        """What comes of it, or raises."""
        return asyncio.run_coroutine_threadsafe(asked, self._running()).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
            return self._loop
