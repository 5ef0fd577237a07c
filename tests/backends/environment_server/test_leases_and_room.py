"""Who may hold how much for how long: leases, ownership, and what a full server answers."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from running import PYTHON_PATH, Running, Start
from tests.support.patience import wait_for

from agentc_backends import clients
from agentc_backends.clients.leases import LOCAL_RETRY


def test_a_client_that_is_not_heard_of_loses_its_sessions_and_nobody_elses(start: Start) -> None:
    server = start("textcraft")
    lost = [server.post("/create", client="lost", lease_s=1)["id"] for _ in range(3)]
    kept = server.post("/create", client="kept", lease_s=60)["id"]
    free = server.post("/create")["id"]
    task = server.tasks()[0]
    for number in (*lost, kept, free):
        server.post("/reset", id=number, task_id=task)
    assert server.client.get("/sessions").json() == {"open": 5, "clients": 2}
    wait_for(lambda: server.open_count() == 2)
    assert server.client.get("/sessions").json()["clients"] == 1
    for number in lost:
        reply = server.post("/step", id=number, action="inventory")
        assert reply == {"error": f"The id {number} is not valid."}
    for number in (kept, free):
        assert "observation" in server.post("/step", id=number, action="inventory")


def test_use_and_word_renew_a_lease(start: Start) -> None:
    server = start("textcraft")
    used = server.post("/create", client="uses", lease_s=6)["id"]
    server.post("/reset", id=used, task_id=server.tasks()[0])
    told = server.post("/create", client="tells", lease_s=6)["id"]
    for _ in range(4):  # longer than a lease in all
        time.sleep(2)
        assert "error" not in server.post("/step", id=used, action="inventory")
        assert server.post("/renew", client="tells", lease_s=6) == {"sessions": 1}
    assert server.open_count() == 2
    assert server.post("/leave", client="uses") == {"sessions": 1}
    assert "error" in server.post("/step", id=used, action="inventory")
    assert server.post("/close", id=told) is True
    assert server.client.get("/sessions").json() == {"open": 0, "clients": 1}


def test_a_session_in_a_call_outlives_its_lease_until_the_call_has_ended(start: Start) -> None:
    server = start("bell")
    number = server.post("/create", client="slow", lease_s=0.5)["id"]
    server.post("/reset", id=number, task_id="ding")
    reply = server.post("/step", id=number, action="wait 2")
    assert reply["observation"] == "wait 2"
    wait_for(lambda: server.open_count() == 0)


def test_a_client_that_waits_in_all_its_places_keeps_its_lease(start: Start) -> None:
    """Its requests last longer than its lease, and leave no place for another one."""
    server = start("bell", "--threads", "1")

    async def wait_in_turn() -> list[str]:
        limits = clients.RateLimits(concurrency=3)
        async with clients.EnvironmentClient(
            server.url, limits=limits, lease_s=2.5, retry=LOCAL_RETRY
        ) as environment:
            sessions = [await environment.create() for _ in range(3)]
            for session in sessions:
                await environment.reset(session, "ding")
            for _ in range(2):
                told = await asyncio.gather(*(environment.step(s, "wait 1.2") for s in sessions))
            return [each.observation for each in told]

    assert asyncio.run(wait_in_turn()) == ["wait 1.2"] * 3


def test_calls_of_a_client_that_is_gone_do_not_begin(start: Start, tmp_path: Path) -> None:
    server = start("bell", "--threads", "1")
    numbers = [server.post("/create", client="gone", lease_s=3)["id"] for _ in range(4)]
    for number in numbers:
        server.post("/reset", id=number, task_id="ding")
    hold = f"hold {tmp_path / 'held'}"
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(server.post, "/step", id=n, action=hold) for n in numbers]
        # One has begun when the lease runs out; the others are queued behind it.
        wait_for((tmp_path / "held.begun").exists)
        time.sleep(7)
        (tmp_path / "held").touch()
        replies = [call.result() for call in calls]
    assert sum("observation" in reply for reply in replies) == 1
    assert sum("is not valid" in str(reply.get("error")) for reply in replies) == 3
    wait_for(lambda: server.open_count() == 0)


def test_a_client_reaches_its_own_sessions_only(start: Start) -> None:
    server = start("textcraft")
    task = server.tasks()[0]
    mine = server.post("/create", client="me", lease_s=60)["id"]
    server.post("/reset", id=mine, task_id=task)
    free = server.post("/create")["id"]
    for number in (mine, free):
        for path, more in (("/reset", {"task_id": task}), ("/step", {"action": "inventory"}),
                           ("/snapshot", {}), ("/fork", {})):  # fmt: skip
            reply = server.post(path, id=number, client="you", **more)
            assert reply == {"error": f"The id {number} is not valid."}, path
        assert server.post("/close", id=number, client="you") is False
    assert server.client.get(f"/detail?id={mine}&client=you").json()["error"]
    fork = server.post("/fork", id=mine, client="me")["id"]
    assert server.post("/leave", client="me") == {"sessions": 2}
    assert "error" in server.post("/step", id=fork, action="inventory")


@pytest.mark.parametrize(
    "body",
    [
        {"client": "a"},
        {"client": "a", "lease_s": 0},
        {"client": "a", "lease_s": 1e9},
        {"client": "a", "lease_s": "9"},
        {"client": "", "lease_s": 9},
        {"client": 5, "lease_s": 9},
        {"client": "a" * 300, "lease_s": 9},
    ],
)
def test_leases_that_make_no_sense_are_refused(bell: Running, body: dict[str, object]) -> None:
    for path in ("/create", "/renew"):
        assert bell.client.post(path, json=body).status_code == 422


@pytest.fixture(scope="module")
def bell(start: Start) -> Running:
    return start("bell", "--threads", "4", "--max-waiting", "2", "--max-sessions", "12")


def test_a_full_server_says_when_to_come_back_and_clients_do(bell: Running) -> None:
    numbers = [bell.post("/create")["id"] for _ in range(12)]
    for number in numbers:
        bell.post("/reset", id=number, task_id="ding")
    full = bell.client.post("/create", json={})
    assert (full.status_code, full.headers["retry-after"]) == (503, "1")
    # 4 calls run and 2 wait; the rest are turned away, and nothing is done.
    with ThreadPoolExecutor(12) as pool:
        replies = list(
            pool.map(
                lambda n: bell.client.post("/step", json={"id": n, "action": "wait 0.5"}), numbers
            )
        )
        turned_away = [reply for reply in replies if reply.status_code == 503]
        assert 0 < len(turned_away) <= 6
        assert {reply.headers["retry-after"] for reply in turned_away} == {"1"}
    for number in numbers:
        bell.post("/close", id=number)

    async def many() -> list[clients.StepResult]:
        limits = clients.RateLimits(concurrency=12)
        async with clients.EnvironmentClient(bell.url, retry=LOCAL_RETRY, limits=limits) as many:

            async def one() -> clients.StepResult:
                session = await many.create()
                await many.reset(session, "ding")
                return await many.step(session, "wait 0.5")

            return await asyncio.gather(*(one() for _ in range(11)))

    assert [result.observation for result in asyncio.run(many())] == ["wait 0.5"] * 11
    # Leaving gave the sessions back.
    wait_for(lambda: bell.open_count() == 0)


HOLDER = """
import asyncio, sys
from agentc_backends import clients

async def hold():
    environment = clients.EnvironmentClient(sys.argv[1], lease_s=1.5)
    for _ in range(5):
        await environment.create()
    print("held", flush=True)
    await asyncio.sleep(600)

asyncio.run(hold())
"""


@pytest.mark.slow
def test_a_killed_client_leaves_nothing_behind(start: Start) -> None:
    server = start("textcraft")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, server.url],
        env={"PYTHONPATH": PYTHON_PATH, "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    # It does nothing, and lives: the lease is renewed.
    time.sleep(3)
    assert server.open_count() == 5
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    wait_for(lambda: server.client.get("/sessions").json() == {"open": 0, "clients": 0})
