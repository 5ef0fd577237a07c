"""Clients for leased servers, as described in a job file (contracts.md, section 3), and the calls
of one environment over several copies of its server. `servers/remote/backend.py` writes the
settings that are read here."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from agentc_backends.clients.chat import ChatClient, EmbeddingClient
from agentc_backends.clients.environment import EnvironmentCalls, EnvironmentClient, StepResult
from agentc_backends.clients.errors import InfrastructureError
from agentc_backends.clients.request_policy import RateLimits, RetryPolicy
from agentc_backends.clients.transport import Timeouts, Transport

REMOTE_TOKEN = "AGENTC_REMOTE_TOKEN"
"""What a remote endpoint's lease calls its key; the job file says which variable holds it."""
# A local server that refuses connections is dead: waiting longer would only delay the news. One
# that is busy has all of this run's work before it, and finishes some of it within the longest that
# a call may last: an environment that asks a model waits so long for the reply.
_LONGEST_CALL_S = Timeouts().read_s
LOCAL_RETRY = RetryPolicy(attempts=4, base_s=0.2, cap_s=1.0, patience_s=_LONGEST_CALL_S + 60.0)


def chat_client(lease: Mapping[str, Any], *, concurrency: int) -> ChatClient:
    """A client of the server behind `job.leases["policy"]`, with at most `concurrency` requests
    in flight (fewer when the lease says so)."""
    urls, token, words = _service(lease, concurrency)
    return ChatClient(urls, token, lease["model"], **words)


def embedding_client(lease: Mapping[str, Any], *, concurrency: int) -> EmbeddingClient:
    """A client of the server behind `leases["scorer"]`, which makes features of pictures."""
    urls, token, words = _service(lease, concurrency)
    transport = Transport(
        [url.rstrip("/").removesuffix("/v1") for url in urls], token, timeouts=Timeouts(), **words
    )
    return EmbeddingClient(transport, lease["model"])


def _service(
    lease: Mapping[str, Any], concurrency: int
) -> tuple[list[str], str | None, dict[str, Any]]:
    """Where a model server is, its token, and how to ask it."""
    settings: Mapping[str, Any] = lease.get("client") or {}
    remote = "log" not in lease
    token = token_of(lease)
    limits = RateLimits(
        requests_per_minute=settings.get("requests_per_minute"),
        tokens_per_minute=settings.get("tokens_per_minute"),
        concurrency=min(concurrency, settings.get("concurrency") or concurrency),
    )
    retry = RetryPolicy(attempts=settings.get("attempts", 8)) if remote else LOCAL_RETRY
    # The key of a remote endpoint outlives the run; a token of ours does not.
    words = {"retry": retry, "limits": limits, "direct": not remote, "guarded": remote}
    return lease.get("urls") or [lease["url"]], token or None, words


def token_of(lease: Mapping[str, Any]) -> str | None:
    """What a leased server is asked with: its token, or the key of a remote endpoint."""
    return lease["token"] or (_key_of(lease) if "log" not in lease else None)


def _key_of(lease: Mapping[str, Any]) -> str | None:
    """The key of a remote endpoint, from the variable that is this lease's alone."""
    variable = (lease.get("secrets") or {}).get(REMOTE_TOKEN)
    return None if variable is None else os.environ.get(variable)


def environment_client(lease: Mapping[str, Any], *, concurrency: int) -> EnvironmentCalls:
    """A client of the server behind `job.leases["environment"]`, or of its copies."""
    clients = [
        EnvironmentClient(
            url,
            lease["token"] or None,
            retry=LOCAL_RETRY,
            limits=RateLimits(concurrency=concurrency),
            direct="log" in lease,
        )
        for url in lease.get("urls") or [lease["url"]]
    ]
    return clients[0] if len(clients) == 1 else ReplicatedEnvironment(clients)


_Found = TypeVar("_Found")


class ReplicatedEnvironment:
    """Sessions over copies; their numbers are this client's own."""

    def __init__(self, clients: Sequence[EnvironmentClient]) -> None:
        self._clients = tuple(clients)
        self._open = [0] * len(self._clients)
        self._lost: set[int] = set()
        self._sessions: dict[int, tuple[int, int]] = {}
        self._next = 1

    async def close_connections(self) -> None:
        for client in self._clients:
            await client.close_connections()

    async def meta(self) -> dict[str, Any]:
        return (await self._anywhere(lambda client: client.meta()))[1]

    async def expert(self, task_id: str, seed: int = 0) -> list[dict[str, str]]:
        return (await self._anywhere(lambda client: client.expert(task_id, seed)))[1]

    async def hidden(self, task_ids: Sequence[str]) -> list[dict[str, str]]:
        return (await self._anywhere(lambda client: client.hidden(task_ids)))[1]

    async def create(self) -> int:
        return self._register(*await self._anywhere(lambda client: client.create()))

    async def reset(self, session: int, task_id: str, seed: int = 0) -> StepResult:
        client, number = self._home(session)
        return await client.reset(number, task_id, seed)

    async def step(self, session: int, action: str) -> StepResult:
        client, number = self._home(session)
        return await client.step(number, action)

    async def close(self, session: int) -> None:
        place, number = self._sessions.pop(session)
        self._open[place] -= 1
        await self._clients[place].close(number)

    async def fork(self, session: int) -> int:
        client, number = self._home(session)
        return self._register(self._sessions[session][0], await client.fork(number))

    async def snapshot(self, session: int) -> dict[str, Any]:
        client, number = self._home(session)
        return await client.snapshot(number)

    async def restore(self, snapshot: Mapping[str, Any], session: int | None = None) -> int:
        if session is None:
            return self._register(*await self._anywhere(lambda one: one.restore(snapshot)))
        client, number = self._home(session)
        await client.restore(snapshot, number)
        return session

    def _home(self, session: int) -> tuple[EnvironmentClient, int]:
        place, number = self._sessions[session]
        return self._clients[place], number

    def _register(self, place: int, number: int) -> int:
        session, self._next = self._next, self._next + 1
        self._sessions[session] = (place, number)
        self._open[place] += 1
        return session

    async def _anywhere(
        self, call: Callable[[EnvironmentClient], Awaitable[_Found]]
    ) -> tuple[int, _Found]:
        """A call that any copy can answer: the place of the one that did, and its answer. A copy
        that failed is asked again only when no other one answers."""
        order = sorted(
            range(len(self._clients)), key=lambda place: (place in self._lost, self._open[place])
        )
        failures: list[str] = []
        for place in order:
            try:
                found = await call(self._clients[place])
            except InfrastructureError as error:
                self._lost.add(place)
                failures.append(str(error))
            else:
                self._lost.discard(place)
                return place, found
        raise InfrastructureError("; ".join(failures))
