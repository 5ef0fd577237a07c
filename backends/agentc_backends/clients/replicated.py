"""ReplicatedEnvironment: the calls of one environment over several copies of its server.

A session stays with the copy that opened it. New ones go to the copy with the fewest open, and past
a copy that cannot be reached: an episode that its copy's death has broken is played again on
another. Neighbours: `environment.py` (one copy), `leased.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from agentc_backends.clients.environment import EnvironmentClient, StepResult
from agentc_backends.clients.errors import InfrastructureError

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
        return self._opened(*await self._anywhere(lambda client: client.create()))

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
        return self._opened(self._sessions[session][0], await client.fork(number))

    async def snapshot(self, session: int) -> dict[str, Any]:
        client, number = self._home(session)
        return await client.snapshot(number)

    async def restore(self, snapshot: Mapping[str, Any], session: int | None = None) -> int:
        if session is None:
            return self._opened(*await self._anywhere(lambda one: one.restore(snapshot)))
        client, number = self._home(session)
        await client.restore(snapshot, number)
        return session

    def _home(self, session: int) -> tuple[EnvironmentClient, int]:
        place, number = self._sessions[session]
        return self._clients[place], number

    def _opened(self, place: int, number: int) -> int:
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
