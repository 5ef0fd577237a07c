"""EnvironmentClient against the real TextCraft server, and against servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from answering import Answer, Serve
from tests.support.patience import PATIENCE_S

from agentc_backends import clients

T = TypeVar("T")
ROOT = Path(__file__).parents[3]
QUICK = clients.RetryPolicy(attempts=3, base_s=0.01, cap_s=0.02)
STEP = {"observation": "ok", "reward": 0.0, "done": False}


def run(url: str, use: Callable[[clients.EnvironmentClient], Awaitable[T]]) -> T:
    async def scenario() -> T:
        async with clients.EnvironmentClient(url, "t", retry=QUICK) as environment:
            return await use(environment)

    return asyncio.run(scenario())


@pytest.fixture(scope="module")
def textcraft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("textcraft")
    ready = folder / "ready.json"
    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "agentc_backends.environments.textcraft.job_serve",
            "--ready-file",
            str(ready),
        ],
        env={**os.environ, "PYTHONPATH": paths, "AGENTC_TOKEN": "t"},
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server is not ready"
            time.sleep(0.05)
        address = json.loads(ready.read_text())
        yield f"http://127.0.0.1:{address['port']}"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_an_expert_solves_a_task_and_a_fork_goes_its_own_way(textcraft: str) -> None:
    async def play(environment: clients.EnvironmentClient) -> tuple[clients.StepResult, str, str]:
        meta = await environment.meta()
        task = next(iter(meta["splits"].values()))[0]
        steps = await environment.expert(task, seed=0)
        session = await environment.create()
        await environment.reset(session, task, seed=0)
        result = clients.StepResult("", 0.0, False)
        for step in steps[:-1]:
            result = await environment.step(session, step["action"])
        assert not result.done
        saved = await environment.snapshot(session)
        fork = await environment.fork(session)
        after = (await environment.step(fork, "inventory")).observation
        result = await environment.step(session, steps[-1]["action"])
        restored = await environment.restore(saved)
        again = (await environment.step(restored, "inventory")).observation
        for number in (session, fork, restored):
            await environment.close(number)
            await environment.close(number)
        return result, after, again

    result, after, again = run(textcraft, play)
    assert result.done
    assert result.reward == 1.0
    assert after == again


def test_an_error_in_a_200_is_an_exception(textcraft: str) -> None:
    with pytest.raises(clients.EnvironmentServerError, match="/step"):
        run(textcraft, lambda environment: environment.step(987654, "inventory"))


def test_a_step_of_unknown_fate_is_not_sent_again(serve: Serve) -> None:
    server = serve([Answer(hang_up=True), Answer(body=STEP)])
    with pytest.raises(clients.InfrastructureError, match="/step"):
        run(server.url, lambda environment: environment.step(1, "go"))
    assert server.paths == ["/step"]


def test_a_step_that_failed_inside_the_server_is_not_sent_again(serve: Serve) -> None:
    server = serve([Answer(500, "broken"), Answer(body=STEP)])
    with pytest.raises(clients.InfrastructureError, match="500"):
        run(server.url, lambda environment: environment.step(1, "go"))
    assert server.paths == ["/step"]


def test_a_step_that_was_turned_away_is_sent_again(serve: Serve) -> None:
    server = serve([Answer(503), Answer(body=STEP)])
    assert run(server.url, lambda e: e.step(1, "go")).observation == "ok"
    assert server.paths == ["/step", "/step"]


def test_other_calls_are_sent_again(serve: Serve) -> None:
    server = serve([Answer(hang_up=True), Answer(500), Answer(body={"id": 7, **STEP})])
    assert run(server.url, lambda environment: environment.create()) == 7
    assert server.paths == ["/create"] * 3


def test_agentgym_servers_that_create_with_a_bare_number(serve: Serve) -> None:
    assert run(serve([Answer(body=12)]).url, lambda environment: environment.create()) == 12


@pytest.mark.parametrize("body", [{"observation": "x"}, [], {**STEP, "reward": "much"}, "oops"])
def test_what_is_no_result_is_an_infrastructure_error(serve: Serve, body: object) -> None:
    with pytest.raises(clients.InfrastructureError):
        run(serve([Answer(body=body)]).url, lambda environment: environment.step(1, "go"))


def test_a_server_that_does_not_count_is_sent_no_numbers(serve: Serve) -> None:
    """As AgentGym's released servers are: they know neither numbers nor leases."""
    server = serve([Answer(body={"id": 7}), Answer(body=STEP), Answer(hang_up=True)])

    async def play(environment: clients.EnvironmentClient) -> None:
        session = await environment.create()
        await environment.reset(session, "0")
        await environment.step(session, "go")

    with pytest.raises(clients.InfrastructureError, match="/step"):
        run(server.url, play)
    assert server.paths == ["/create", "/reset", "/step"]
    assert server.seen[1][1] == {"id": 7, "task_id": "0", "seed": 0}
    assert server.seen[2][1] == {"id": 7, "action": "go"}


def test_a_server_that_counts_is_sent_the_step_again(serve: Serve) -> None:
    first = Answer(body={"id": 7, "seq": 0})
    second = Answer(body={**STEP, "seq": 1})
    server = serve([first, Answer(hang_up=True), Answer(500), second, Answer(body=True)])

    async def play(environment: clients.EnvironmentClient) -> str:
        session = await environment.create()
        return (await environment.step(session, "go")).observation

    assert run(server.url, play) == "ok"
    assert server.paths == ["/create", *["/step"] * 3, "/leave"]
    assert len({str(body) for _, body, _ in server.seen[1:4]}) == 1
    assert server.seen[1][1]["seq"] == 1


def test_a_number_out_of_order_voids_the_episode(serve: Serve) -> None:
    refused = Answer(409, {"error": "seq is 1; this session expects 5", "expected": 5})
    server = serve([Answer(body={"id": 7, "seq": 0}), refused, Answer(body=True)])

    async def play(environment: clients.EnvironmentClient) -> None:
        await environment.step(await environment.create(), "go")

    with pytest.raises(clients.InfrastructureError, match="expects 5"):
        run(server.url, play)


def test_a_busy_server_is_waited_for_beyond_the_deadline_of_a_reply(serve: Serve) -> None:
    """It lives and has done nothing: neither tries nor time are over."""
    busy = Answer(503, {"error": "busy"}, {"Retry-After": "0.1"})
    server = serve(lambda number, path, body: busy if number < 8 else Answer(200, {"name": "x"}))
    policy = clients.RetryPolicy(attempts=2, base_s=0.01, deadline_s=0.5, patience_s=PATIENCE_S)

    async def ask(retry: clients.RetryPolicy) -> dict[str, Any]:
        async with clients.EnvironmentClient(server.url, "t", retry=retry) as environment:
            return await environment.meta()

    assert asyncio.run(ask(policy)) == {"name": "x"}
    server = serve(lambda number, path, body: busy)
    with pytest.raises(clients.InfrastructureError, match=r"503.*tries: 2"):
        asyncio.run(ask(replace(policy, patience_s=0.0)))


@pytest.mark.parametrize(
    ("finished", "tries"),
    [(lambda number: number, None), (lambda number: 7, 2), (lambda number: None, 2)],
    ids=["some of it", "none of it", "it does not say"],
)
def test_a_busy_server_is_waited_for_as_long_as_it_finishes_something(
    serve: Serve, finished: Callable[[int], int | None], tries: int | None
) -> None:
    """By a clock that each request takes 200 s of."""
    now = [0.0]

    def answer(number: int, path: str, body: Any) -> Answer:
        now[0] += 200.0
        told = {"error": "busy", "finished": finished(number)}
        return Answer(503, told, {"Retry-After": "0"}) if number < 9 else Answer(200, {"name": "x"})

    server = serve(answer)
    policy = clients.RetryPolicy(base_s=0.001, patience_s=360.0, clock=lambda: now[0])

    async def ask() -> dict[str, Any]:
        async with clients.EnvironmentClient(server.url, "t", retry=policy) as environment:
            return await environment.meta()

    if tries is None:
        assert asyncio.run(ask()) == {"name": "x"}
        return
    said = rf"503.*nothing was finished for 400 s \(tries: {tries}, 400.0 s\)"
    with pytest.raises(clients.InfrastructureError, match=said):
        asyncio.run(ask())
