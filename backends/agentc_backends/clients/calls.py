"""What players of episodes call, whether a server answers or the same process does.

Neighbours: `environment.py` (over HTTP), `environments/server/inside.py` (in process).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agentc_backends.clients.environment import StepResult


class EnvironmentCalls(Protocol):
    """The calls of `EnvironmentClient` that episodes, searches and stages make."""

    async def meta(self) -> dict[str, Any]: ...

    async def create(self) -> int: ...

    async def reset(self, session: int, task_id: str, seed: int = 0) -> StepResult: ...

    async def step(self, session: int, action: str) -> StepResult: ...

    async def close(self, session: int) -> None: ...

    async def fork(self, session: int) -> int: ...

    async def snapshot(self, session: int) -> dict[str, Any]: ...

    async def restore(self, snapshot: Mapping[str, Any], session: int | None = None) -> int: ...

    async def expert(self, task_id: str, seed: int = 0) -> list[dict[str, str]]: ...

    async def hidden(self, task_ids: Sequence[str]) -> list[dict[str, str]]: ...

    async def close_connections(self) -> None: ...
