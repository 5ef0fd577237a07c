"""Calls that wait for their turn: for so long, and then they are asked to come again."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agentc_backends.environments.server.refusals import BusyError
from agentc_backends.environments.server.workers import Workers


def test_a_turn_that_does_not_come_is_refused_and_nothing_is_done() -> None:
    done: list[str] = []
    go_on = threading.Event()

    async def play() -> None:
        workers = Workers(1, 8, patience_s=0.05)
        first = asyncio.create_task(workers.run(go_on.wait))
        await asyncio.sleep(0)
        with pytest.raises(BusyError) as refused:
            await workers.run(lambda: done.append("second"))
        assert refused.value.headers == {"Retry-After": "1"}
        closing = asyncio.create_task(workers.run(lambda: done.append("close"), refuse=False))
        await asyncio.sleep(0.2)
        assert done == []
        go_on.set()
        assert await first
        await closing
        await workers.run(lambda: done.append("third"))

    asyncio.run(play())
    assert done == ["close", "third"]


def test_a_call_waits_as_long_for_the_one_before_it_in_its_session() -> None:
    async def play() -> None:
        workers, lock = Workers(1, 8, patience_s=0.05), asyncio.Lock()
        await lock.acquire()
        with pytest.raises(BusyError):
            async with workers.turn(lock):
                raise AssertionError("it is held")
        lock.release()
        async with workers.turn(lock):
            assert lock.locked()
        assert not lock.locked()

    asyncio.run(play())
