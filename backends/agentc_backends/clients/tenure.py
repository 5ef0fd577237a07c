"""The lease by which a client holds its sessions: named, renewed in the background, given back.

Neighbour: `environment.py`, whose requests it is sent with.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from agentc_backends.clients.errors import ServiceError

Post: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
_RENEWALS_IN_A_LEASE = 3
_PARTING_SECONDS = 2.0


class Tenure:
    """One client's lease at one server; it begins with the first session that lives by it."""

    def __init__(self, seconds: float) -> None:
        self._client = uuid.uuid4().hex
        self._seconds = seconds
        self._renewing: asyncio.Task[None] | None = None

    def named(self) -> dict[str, Any]:
        """What a request says of its sender."""
        return {"client": self._client}

    def asked(self) -> dict[str, Any]:
        """What a request says that opens a session."""
        return {**self.named(), "lease_s": self._seconds}

    def begin(self, post: Post) -> None:
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew(post))

    async def end(self, post: Post) -> None:
        """Give the lease back, if it was taken; a server that is gone needs no word."""
        if self._renewing is None:
            return
        self._renewing.cancel()
        with suppress(ServiceError, asyncio.TimeoutError):
            await asyncio.wait_for(post("/leave", self.named()), _PARTING_SECONDS)

    async def _renew(self, post: Post) -> None:
        while True:
            await asyncio.sleep(self._seconds / _RENEWALS_IN_A_LEASE)
            # What a failure means shows in the next request that matters.
            with suppress(ServiceError):
                await post("/renew", self.asked())
