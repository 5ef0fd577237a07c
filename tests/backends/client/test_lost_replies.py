"""Whole episodes of EnvironmentClient through a line that loses replies at random."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

from agentc_backends import clients

ROOT = Path(__file__).parents[3]
QUICK = clients.RetryPolicy(attempts=20, base_s=0.001, cap_s=0.005)


@pytest.fixture(scope="module")
def textcraft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    ready = tmp_path_factory.mktemp("textcraft") / "ready.json"
    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "agentc_backends.environments.textcraft.job_serve",
            "--ready-file",
            str(ready),
        ],
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server is not ready"
            time.sleep(0.05)
        yield int(json.loads(ready.read_text())["port"])
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


class Line:
    """A relay to a server on this machine; of `lost` replies in a hundred, the client sees the
    connection end instead, after the server has done its part."""

    def __init__(self, port: int, lost: int, seed: int) -> None:
        self._port = port
        self._lost = lost
        self._chance = random.Random(seed)
        self.cut = 0

    async def carry(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, ahead = await asyncio.open_connection("127.0.0.1", self._port)

        async def forth() -> None:
            while data := await near.read(65536):
                ahead.write(data)
            ahead.close()

        sending = asyncio.create_task(forth())
        while data := await far.read(1 << 20):
            if self._chance.randrange(100) < self._lost:
                self.cut += 1
                break
            back.write(data)
        sending.cancel()
        for writer in (back, ahead):
            writer.close()


@asynccontextmanager
async def unreliable(port: int, lost: int, seed: int) -> AsyncIterator[tuple[str, Line]]:
    line = Line(port, lost, seed)
    relay = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    async with relay:
        yield f"http://127.0.0.1:{relay.sockets[0].getsockname()[1]}", line


async def episode(
    environment: clients.EnvironmentClient, task: str, actions: list[str]
) -> list[clients.StepResult]:
    session = await environment.create()
    rows = [await environment.reset(session, task, seed=3)]
    rows += [await environment.step(session, action) for action in actions]
    await environment.close(session)
    return rows


def test_episodes_tell_what_they_tell_on_a_good_line(textcraft: int) -> None:
    async def scenario() -> None:
        good = f"http://127.0.0.1:{textcraft}"
        async with clients.EnvironmentClient(good) as environment:
            tasks = (await environment.meta())["splits"]["test"][:6]
            plans = {}
            for task in tasks:
                plan = [step["action"] for step in await environment.expert(task, seed=3)]
                # Twice the same: done twice, it takes twice as much.
                plans[task] = ["inventory", *[a for action in plan[:4] for a in (action, action)]]
            expected = {task: await episode(environment, task, plans[task]) for task in tasks}
        async with unreliable(textcraft, 25, seed=5) as (url, line):
            async with clients.EnvironmentClient(url, retry=QUICK) as environment:
                got = await asyncio.gather(
                    *(episode(environment, task, plans[task]) for task in tasks)
                )
            assert line.cut > 10
        assert dict(zip(tasks, got, strict=True)) == expected

    asyncio.run(scenario())


def test_many_sessions_step_by_one_request_on_a_bad_line(textcraft: int) -> None:
    async def scenario() -> None:
        async with unreliable(textcraft, 25, seed=6) as (url, line):
            async with clients.EnvironmentClient(url, retry=QUICK) as environment:
                meta = await environment.meta()
                assert "steps" in meta["protocol"]
                tasks = meta["splits"]["test"][:8]
                sessions = [await environment.create() for _ in tasks]
                for session, task in zip(sessions, tasks, strict=True):
                    await environment.reset(session, task)
                await environment.close(sessions[-1])
                for _ in range(10):
                    results = await environment.step_many([(n, "inventory") for n in sessions])
                    assert isinstance(results.pop(), clients.ServiceError)
                    said = {r.observation for r in results if isinstance(r, clients.StepResult)}
                    assert said == {"Inventory: You are not carrying anything."}
                    assert len(results) == 7
                with pytest.raises(ValueError, match="once"):
                    await environment.step_many([(sessions[0], "a"), (sessions[0], "b")])
            assert line.cut > 5

    asyncio.run(scenario())


def test_a_step_that_was_given_up_is_never_taken_for_the_next(textcraft: int) -> None:
    """A caller that stops waiting does not know whether it acted; the reset after it counts on."""

    async def scenario() -> None:
        async with clients.EnvironmentClient(f"http://127.0.0.1:{textcraft}") as environment:
            task = (await environment.meta())["splits"]["test"][0]
            session = await environment.create()
            await environment.reset(session, task)
            waiting = asyncio.create_task(environment.step(session, "inventory"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            opened = await environment.reset(session, task)
            assert "Goal:" in opened.observation
            for _ in range(2):
                after = await environment.step(session, "xyzzy")
                assert "xyzzy" in after.observation

    asyncio.run(scenario())
