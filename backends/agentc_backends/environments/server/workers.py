"""Runs blocking calls of environments in threads, so that the event loop never waits for them.

Threads are daemons made for each call: a call that hangs can then hold up neither other sessions
nor the server's end. Making one takes less than a tenth of a millisecond.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeVar

from agentc_backends.environments.server.refusals import BusyError, RequestError

_T = TypeVar("_T")


PATIENCE_S = 30.0
"""Less than clients wait for a reply before they take it for lost."""


class Turns:
    """So many at a time; `finished` counts those that are over."""

    def __init__(self, at_once: int = 1) -> None:
        self._free: asyncio.Lock | asyncio.Semaphore
        self._free = asyncio.Lock() if at_once == 1 else asyncio.Semaphore(at_once)
        self.finished = 0

    def locked(self) -> bool:
        """Whether one that comes now has to wait."""
        return self._free.locked()

    async def acquire(self) -> None:
        await self._free.acquire()

    def release(self) -> None:
        self.finished += 1
        self._free.release()


class Workers:
    """At most `limit` calls at a time; at most `waiting` others wait their turn, for a thread or
    for the call before them on the same session, and none longer than `patience_s`: it is then
    asked to come again, with nothing done."""

    def __init__(self, limit: int, waiting: int, patience_s: float = PATIENCE_S) -> None:
        self._turns = Turns(limit)
        self._places = limit + waiting
        self._taken = 0
        self.patience_s = patience_s

    @contextmanager
    def place(self) -> Iterator[None]:
        """Held from a call's arrival to its end. Raises BusyError when there is none."""
        if self._taken >= self._places:
            message = f"{self._taken} calls run or wait already; try again later"
            raise BusyError(message, self._turns.finished)
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    @asynccontextmanager
    async def turn(self, of: Turns, *, refuse: bool = True) -> AsyncIterator[None]:
        """Held once it is free. Raises BusyError when that takes too long, unless it may not."""
        if refuse and of.locked():
            try:
                await asyncio.wait_for(of.acquire(), self.patience_s)
            except asyncio.TimeoutError:
                message = f"no turn came within {self.patience_s:g} s; try again"
                raise BusyError(message, of.finished) from None
        else:
            await of.acquire()
        try:
            yield
        finally:
            of.release()

    async def run(
        self,
        call: Callable[[], _T],
        check: Callable[[], None] = lambda: None,
        *,
        refuse: bool = True,
    ) -> _T:
        """The call's result, or what it raises; `check` is made when its turn has come, and may
        raise because nobody waits for it any more."""
        try:
            async with self.turn(self._turns, refuse=refuse):
                check()
                return await _in_thread(call)
        except asyncio.CancelledError as error:
            raise RequestError(503, {"error": "the server is stopping"}) from error


def _in_thread(call: Callable[[], _T]) -> asyncio.Future[_T]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, raised = None, None
        try:
            result = call()
        except BaseException as error:
            raised = error
        # A loop that is closed already has nobody who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, raised)

    threading.Thread(target=work, name="environment", daemon=True).start()
    return future
