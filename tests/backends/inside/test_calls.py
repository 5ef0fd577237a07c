"""Calls of an environment in this process against those of its server: the same answers, and the
same kinds of refusal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.clients import (
    EnvironmentCalls,
    EnvironmentClient,
    RetryPolicy,
    ServiceError,
)
from agentc_backends.environments.server.inside import InsideEnvironment
from agentc_backends.environments.server.program import NotInsideError, opener_of

PROGRAM = ("-m", "agentc_backends.environments.textcraft.job_serve", "--max-depth", "2")
TASK = "minecraft:stick"
Call = Callable[[EnvironmentCalls], Awaitable[Any]]


async def _walk(calls: EnvironmentCalls) -> Any:
    number = await calls.create()
    seen: list[Any] = [await calls.reset(number, TASK, 3)]
    steps = await calls.expert(TASK, 3)
    saved = await calls.snapshot(number)
    for step in (*steps, {"action": "look \ud800 around"}):
        seen.append(await calls.step(number, step["action"]))
    other = await calls.fork(number)
    seen.append(await calls.step(other, "inventory"))
    await calls.restore(saved, number)
    seen.append(await calls.step(number, "inventory"))
    again = await calls.restore(saved)
    seen.append(await calls.step(again, "inventory"))
    for each in (number, other, again, again):
        await calls.close(each)
    meta = await calls.meta()
    # What the protocol can do beside the environment is a server's to say.
    meta.pop("protocol", None)
    return [seen, steps, saved, meta]


async def _unknown_task(calls: EnvironmentCalls) -> Any:
    return await calls.reset(await calls.create(), "minecraft:sick")


async def _closed_session(calls: EnvironmentCalls) -> Any:
    number = await calls.create()
    await calls.close(number)
    return await calls.step(number, "inventory")


async def _broken_snapshot(calls: EnvironmentCalls) -> Any:
    return await calls.restore({"environment": "textcraft"})


async def _unknown_plan(calls: EnvironmentCalls) -> Any:
    return await calls.expert("minecraft:sick")


async def _outcome(calls: EnvironmentCalls, call: Call) -> Any:
    try:
        return await call(calls)
    except ServiceError as error:
        return type(error), getattr(error, "status", None)


@pytest.mark.parametrize(
    "call", [_walk, _unknown_task, _closed_session, _broken_snapshot, _unknown_plan]
)
def test_as_over_http(share: Any, call: Call) -> None:
    command = [*PROGRAM, "--port", "0", "--ready-file", "READY"]
    lease = share("environment", command, "token").lease

    async def both() -> tuple[Any, Any]:
        retry = RetryPolicy(attempts=1)
        async with EnvironmentClient(lease["url"], lease["token"], retry=retry) as client:
            there = await _outcome(client, call)
        here = await _outcome(InsideEnvironment(opener_of(PROGRAM)), call)
        return here, there

    here, there = asyncio.run(both())
    assert here == there


def test_what_cannot_be_opened_here_says_why(tmp_path: Path) -> None:
    with pytest.raises(NotInsideError, match="has no `opener"):
        opener_of(("-m", "agentc_backends.servers.scripted.job_serve"))
    with pytest.raises(NotInsideError, match="no_such_program cannot be imported"):
        opener_of(("-m", "no_such_program"))
    with pytest.raises(NotInsideError, match="not the program of a module"):
        opener_of(("server.py", "--port", "0"))
    with pytest.raises(NotInsideError, match="recipes"):
        InsideEnvironment(opener_of((*PROGRAM, "--recipe-directory", str(tmp_path / "recipes"))))
    waits = ("--game", "guess_my_city", "--oracle", "server", "--oracle-url", "http://127.0.0.1:9")
    program = ("-m", "agentc_backends.environments.guessing_games.job_serve", *waits)
    with pytest.raises(NotInsideError, match="needs its server"):
        InsideEnvironment(opener_of(program))


def test_a_bug_of_the_environment_is_infrastructure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "conformance"))
    import counting_world

    async def play() -> Any:
        world = InsideEnvironment(lambda: counting_world.CountingWorld("breaks_on_nonsense"))
        number = await world.create()
        await world.reset(number, "ants")
        return await _outcome(world, lambda calls: calls.step(number, "\u00fcp"))

    kind, _ = asyncio.run(play())
    assert kind.__name__ == "InfrastructureError"
    assert "RuntimeError: not ASCII" in capsys.readouterr().err
    sys.modules.pop("counting_world")
