"""Calls that wait for their turn: for so long, and then they are asked to come again."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from bell import BellEnvironment
from tests.support.patience import PATIENCE_S

from agentc_backends.environments.server.episodes import Episodes
from agentc_backends.environments.server.requests import BusyError, Turns, Workers
from agentc_backends.environments.server.sessions import SessionStore


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
        workers, turns = Workers(1, 8, patience_s=0.05), Turns()
        await turns.acquire()
        with pytest.raises(BusyError) as refused:
            async with workers.turn(turns):
                raise AssertionError("it is held")
        assert refused.value.payload["finished"] == 0, "those of this session"
        turns.release()
        async with workers.turn(turns):
            assert turns.locked()
        assert not turns.locked()
        assert turns.finished == 2

    asyncio.run(play())


def test_a_session_whose_call_hangs_ends_behind_it(tmp_path: Path) -> None:
    """Who closes it does not wait for ever."""
    held = tmp_path / "held"

    async def play() -> None:
        store = SessionStore(BellEnvironment, time.monotonic, max_sessions=1, idle_timeout=3600)
        workers = Workers(4, 8, patience_s=0.05)
        episodes = Episodes(store, BellEnvironment(), workers)
        session, _ = await episodes.create()
        await episodes.reset(session, "ding", 0)
        hanging = asyncio.create_task(episodes.step(session, f"hold {held}"))
        while not held.with_suffix(".begun").exists():
            await asyncio.sleep(0.01)
        assert store.close(session.number) is session
        await episodes.close(session)
        assert not session.closed
        held.touch()
        await hanging
        while not session.closed:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(play(), PATIENCE_S))
