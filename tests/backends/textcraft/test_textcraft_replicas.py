"""Copies of one environment's server behind one client: episodes stay where they began, and go on
elsewhere, from their start, when a copy dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentc_backends.clients import EnvironmentCalls, InfrastructureError
from agentc_backends.clients.leases import environment_client

TOKEN = "a-token"


def test_sessions_stay_with_their_copy_and_new_ones_go_past_a_dead_one(
    start_server: Callable[..., Any],
) -> None:
    servers = [start_server(token=TOKEN) for _ in range(2)]
    urls = [f"http://127.0.0.1:{server.ready['port']}" for server in servers]
    lease = {"url": urls[0], "urls": urls, "token": TOKEN, "log": "environment.log"}

    async def play() -> None:
        world = environment_client(lease, concurrency=4)
        try:
            meta = await world.meta()
            tasks = meta["splits"]["train"][:4]
            played = [await episode(world, task) for task in tasks]
            # Two on each copy: a session's number is the client's own, and says nothing of copies.
            assert sorted(number for number, _ in played) == [1, 2, 3, 4]
            servers[0].stop()
            again = {}
            for number, (session, first) in enumerate(played):
                try:
                    await world.step(session, "inventory")
                except InfrastructureError:
                    again[number] = (await episode(world, tasks[number]))[1]
                    assert again[number] == first
            assert len(again) == 2
            # From here on all are opened on the copy that is left.
            assert (await episode(world, tasks[0]))[1] == played[0][1]
            servers[1].stop()
            with pytest.raises(InfrastructureError):
                await world.create()
        finally:
            await world.close_connections()

    asyncio.run(play())


async def episode(world: EnvironmentCalls, task: str) -> tuple[int, str]:
    session = await world.create()
    return session, (await world.reset(session, task, 3)).observation
