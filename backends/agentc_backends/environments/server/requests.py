"""How requests of any protocol are carried out: refusals in the shapes of AgentGym's servers,
numbers that let a request be sent twice, and threads for blocking calls. Imports no HTTP library.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar


class RequestError(Exception):
    """The request cannot be served; `payload` is the reply's JSON."""

    def __init__(self, status: int, payload: Mapping[str, Any]) -> None:
        super().__init__(status, payload)
        self.status = status
        self.payload = payload
        self.headers: Mapping[str, str] = {}


class BusyError(RequestError):
    """As much is in hand as the server takes: it asks to be tried again in a while. `finished`
    counts what is over of that which is waited for: as long as it rises, waiting is worth while."""

    def __init__(self, message: str, finished: int) -> None:
        super().__init__(503, {"error": message, "finished": finished})
        self.message = message
        self.headers = {"Retry-After": "1"}


def invalid(kind: str, place: tuple[str, ...], message: str, value: object) -> RequestError:
    """A 422 in the shape that FastAPI gives it."""
    detail = {"type": kind, "loc": list(place), "msg": message, "input": value}
    return RequestError(422, {"detail": [detail]})


def json_number(value: float) -> int | float:
    """A reward as AgentGym writes it: 0 and 1, not 0.0 and 1.0."""
    return int(value) if value == int(value) else value


# A client counts its resets, steps and restores of a session from 1. The last answer is kept: a
# request with its number gets it again, the next number acts, and any other is refused.

Reply: TypeAlias = Mapping[str, Any]
UNCOUNTED = None
"""The number of a request that gives none: it acts, and counts for nothing."""
NEXT = 0
"""Asks for whatever number is next: for a client that does not know which of its requests acted,
and starts the episode over."""


@dataclass(slots=True)
class RequestSequence:
    """The numbered requests of one session; its user lets one request in at a time."""

    last: int = 0
    _asked: object = None
    _answer: Reply = field(default_factory=dict)
    _raised: Exception | None = None

    def carry_out(self, number: int | None, asked: object, act: Callable[[], Reply]) -> Reply:
        """What `act` answers, now or when it was carried out under this number.

        `asked` tells requests apart: one that bears another's number is refused. A RequestError
        of `act` says that nothing was done, so it is not counted.
        """
        if number is UNCOUNTED:
            return act()
        if number == self.last and number != NEXT:
            if asked != self._asked:
                message = f"seq {number} was another request; this session expects {number + 1}"
                raise RequestError(409, {"error": message, "expected": number + 1})
            if self._raised is not None:
                raise self._raised
            return self._answer
        expected = self.last + 1
        if number not in (NEXT, expected):
            message = f"seq is {number}; this session expects {expected}"
            raise RequestError(409, {"error": message, "expected": expected})
        try:
            answer, raised = {**act(), "seq": expected}, None
        except RequestError:
            raise
        except Exception as error:
            answer, raised = {}, error
        self.last, self._asked, self._answer, self._raised = expected, asked, answer, raised
        if raised is not None:
            raise raised
        return answer


# Threads are daemons, one for each call: a call that hangs delays neither other sessions nor the
# server's end. Starting one takes less than a tenth of a millisecond.

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

    def resolve(result: _T | None, error: BaseException | None) -> None:
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
            loop.call_soon_threadsafe(resolve, result, raised)

    threading.Thread(target=work, name="environment", daemon=True).start()
    return future
