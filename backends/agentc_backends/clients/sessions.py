"""A client's sessions at an environment server: numbers of the requests that act in one, so that
one whose reply was lost can be sent again, and the lease by which the client holds all of them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from agentc_backends.clients.errors import ServiceError

_NEXT = 0
"""For the server: whatever number is next."""


class SequenceNumbers:
    """The last number that acted, by session; None where an answer never came."""

    def __init__(self) -> None:
        self._last: dict[int, int | None] = {}

    def __contains__(self, session: int) -> bool:
        return session in self._last

    def begin(self, session: int, answer: Mapping[str, Any]) -> bool:
        """Whether the server counts requests of this new session."""
        last = answer.get("seq")
        if isinstance(last, int):
            self._last[session] = last
        return session in self._last

    def next(self, session: int, *, starts_over: bool = False) -> int | None:
        """The number of a request; None for one that cannot be numbered. Where it is not known
        what came of the last one, only a request that `starts_over` can."""
        last = self._last.get(session)
        if last is not None:
            return last + 1
        return _NEXT if starts_over and session in self._last else None

    def note(self, session: int, answer: object) -> None:
        """An answer came, under the number that it carries."""
        if session in self._last and isinstance(answer, Mapping) and "seq" in answer:
            self._last[session] = int(answer["seq"])

    def lose(self, session: int) -> None:
        """No answer came, or one that does not say whether the request counted."""
        if session in self._last:
            self._last[session] = None

    def forget(self, session: int) -> None:
        self._last.pop(session, None)


Post: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
_RENEWALS_IN_A_LEASE = 3
_PARTING_SECONDS = 2.0


class ClientLease:
    """One client's lease at one server; it begins with the first session that lives by it."""

    def __init__(self, seconds: float) -> None:
        self._client = uuid.uuid4().hex
        self._seconds = seconds
        self._renewing: asyncio.Task[None] | None = None

    def client_fields(self) -> dict[str, Any]:
        """What a request says of its sender."""
        return {"client": self._client}

    def lease_fields(self) -> dict[str, Any]:
        """What a request says that opens a session."""
        return {**self.client_fields(), "lease_s": self._seconds}

    def begin(self, post: Post) -> None:
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew(post))

    async def end(self, post: Post) -> None:
        """Give the lease back, if it was taken; a server that is gone needs no word."""
        if self._renewing is None:
            return
        self._renewing.cancel()
        with suppress(ServiceError, asyncio.TimeoutError):
            await asyncio.wait_for(post("/leave", self.client_fields()), _PARTING_SECONDS)

    async def _renew(self, post: Post) -> None:
        while True:
            await asyncio.sleep(self._seconds / _RENEWALS_IN_A_LEASE)
            # What a failure means shows in the next request that matters.
            with suppress(ServiceError):
                await post("/renew", self.lease_fields())
