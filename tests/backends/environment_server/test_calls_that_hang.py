"""A call that never ends, in a real server: what that says, and when its client gives it up."""

from __future__ import annotations

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from running import Running, Start
from tests.support.patience import PATIENCE_S, wait_for

from agentc_backends import clients


def test_a_busy_server_says_what_it_has_finished(start: Start, tmp_path: Path) -> None:
    server = start("bell", "--threads", "1", "--max-waiting", "0")
    held = [tmp_path / "first", tmp_path / "second"]
    sessions = [server.post("/create")["id"] for _ in range(2)]
    for number in sessions:
        server.post("/reset", id=number, task_id="ding")
    told: list[list[int]] = []
    for path in held:
        with ThreadPoolExecutor() as pool:
            hanging = pool.submit(server.post, "/step", id=sessions[0], action=f"hold {path}")
            wait_for(path.with_suffix(".begun").exists)
            told.append([_refused(server, sessions[1]) for _ in range(2)])
            path.touch()
            assert "observation" in hanging.result()
        assert "observation" in server.post("/step", id=sessions[1], action="ring")
    (before, still), (after, _) = told
    assert before == still, "nothing is over while the call hangs"
    assert after == before + 2


def _refused(server: Running, number: int) -> int:
    reply = server.client.post("/step", json={"id": number, "action": "ring"})
    assert reply.status_code == 503
    assert "Retry-After" in reply.headers
    return int(reply.json()["finished"])


def test_a_call_behind_one_that_hangs_is_given_up(start: Start, tmp_path: Path) -> None:
    server = start("bell", "--threads", "1", "--max-waiting", "0")
    held = tmp_path / "held"
    policy = clients.RetryPolicy(patience_s=0.3)

    async def play() -> str:
        async with clients.EnvironmentClient(server.url, retry=policy) as environment:
            session = await environment.create()
            await environment.reset(session, "ding")
            hanging = asyncio.create_task(environment.step(session, f"hold {held}"))
            while not held.with_suffix(".begun").exists():
                await asyncio.sleep(0.01)
            hanging.cancel()
            with pytest.raises(clients.InfrastructureError, match=r"503.*nothing was finished for"):
                await environment.step(session, "ring")
            held.touch()
            await environment.close(session)
            again = await environment.create()
            return (await environment.reset(again, "dong")).observation

    assert asyncio.run(play()) == "Ring dong."


def test_a_server_that_answers_nothing_is_given_up(start: Start) -> None:
    server = start("textcraft")
    session = server.post("/create")["id"]
    server.post("/reset", id=session, task_id=server.tasks()[0])
    policy = clients.RetryPolicy(attempts=2, base_s=0.01, patience_s=PATIENCE_S)

    async def ask() -> str:
        timeouts = clients.Timeouts(read_s=0.3)
        async with clients.EnvironmentClient(
            server.url, retry=policy, timeouts=timeouts
        ) as environment:
            return await environment.observation(session)

    server.process.send_signal(signal.SIGSTOP)
    with pytest.raises(clients.InfrastructureError, match=r"silent.*tries: 2"):
        asyncio.run(ask())
    server.process.send_signal(signal.SIGCONT)
    assert "observation" in server.post("/step", id=session, action="inventory")
