"""The generic server with an environment whose calls take long, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.patience import PATIENCE_S, wait_for

PROGRAM = Path(__file__).with_name("bell.py")
ROOT = Path(__file__).parents[3]


class Server:
    def __init__(self, directory: Path) -> None:
        ready = directory / "ready.json"
        path = os.pathsep.join(str(ROOT / part) for part in ("compiler", "backends"))
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), "--die-with-parent", "--ready-file", str(ready)],
            env={**os.environ, "PYTHONPATH": path},
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_for(lambda: ready.exists() or self.process.poll() is not None)
        assert ready.exists(), self.process.communicate()[1]
        address = json.loads(ready.read_text())
        url = f"http://{address['host']}:{address['port']}"
        self.client = httpx2.Client(base_url=url, timeout=PATIENCE_S)

    def post(self, path: str, **body: object) -> Any:
        return self.client.post(path, json=body).json()

    def start(self, task_id: str = "ding") -> int:
        number: int = self.post("/create")["id"]
        self.post("/reset", id=number, task_id=task_id)
        return number


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path)
    yield running
    running.client.close()
    running.process.kill()
    running.process.wait()


class Held:
    """A call that lasts until it is let go."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "held"
        self.action = f"hold {self._path}"

    def wait_until_begun(self) -> None:
        wait_for(self._path.with_suffix(".begun").exists)

    def let_go(self) -> None:
        self._path.touch()


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


def test_a_slow_call_holds_up_no_other_session(server: Server, held: Held) -> None:
    slow, quick = server.start(), server.start()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(server.post, "/step", id=slow, action=held.action)
        held.wait_until_begun()
        for _ in range(3):
            assert server.post("/step", id=quick, action="ring")["done"] is False
        assert server.client.get("/health").json() == {"status": "healthy"}
        assert not waiting.done()
        held.let_go()
        assert waiting.result()["observation"] == held.action


def test_calls_on_one_session_come_one_after_another(server: Server) -> None:
    number = server.start()
    with ThreadPoolExecutor(8) as pool:
        calls = [
            pool.submit(server.post, "/step", id=number, action=action)
            for action in ("wait 0.1", "ring", "wait 0.1", "ring", "ring", "ring")
        ]
    replies = [call.result() for call in calls]
    assert all("observation" in reply for reply in replies)
    assert sorted(r["rung"] for r in replies if r["observation"] == "ring") == [1, 2, 3, 4]


def test_closing_waits_for_the_call_that_runs(server: Server, held: Held) -> None:
    number = server.start()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(server.post, "/step", id=number, action=held.action)
        held.wait_until_begun()
        closing = pool.submit(server.post, "/close", id=number)
        assert not wait([closing], timeout=0.3).done
        held.let_go()
        assert waiting.result()["observation"] == held.action
        assert closing.result() is True
    assert server.post("/close", id=number) is False
    assert server.post("/step", id=number, action="ring") == {
        "error": f"The id {number} is not valid."
    }


def test_failures_and_calls_out_of_place_are_told_as_agentgym_does(server: Server) -> None:
    number = server.post("/create")
    assert list(number) == ["id"]
    early = server.client.post("/step", json={**number, "action": "ring"})
    assert (early.status_code, early.json()) == (200, {"error": "nothing to ring yet"})
    server.post("/reset", **number, data_idx=1)
    broken = server.client.post("/step", json={**number, "action": "break"})
    assert (broken.status_code, broken.json()) == (200, {"error": "the bell is cracked"})


@pytest.mark.parametrize("path", ["/fork", "/snapshot", "/restore", "/expert"])
def test_what_an_environment_cannot_do_is_refused_by_name(server: Server, path: str) -> None:
    body = {"id": server.start(), "task_id": "ding", "snapshot": {}}
    reply = server.client.post(path, json=body)
    assert reply.status_code == 501
    assert "Bell has no capability" in reply.json()["error"]


def test_replies_carry_what_is_reported_and_no_more(server: Server) -> None:
    number = server.post("/create")["id"]
    opened = server.post("/reset", id=number, task_id="dong")
    assert opened == {
        "id": number, "observation": "Ring dong.", "reward": 0, "done": False, "rung": 0
    }  # fmt: skip
    assert server.post("/step", id=number, action="ring") == {
        "observation": "ring", "reward": -0.5, "done": False, "rung": 1
    }  # fmt: skip
    assert server.client.get("/meta").json()["capabilities"] == []


def test_stops_although_a_call_hangs(server: Server, held: Held) -> None:
    number = server.start()
    with ThreadPoolExecutor() as pool:
        body = {"id": number, "action": held.action}
        hanging = pool.submit(server.client.post, "/step", json=body)
        held.wait_until_begun()
        server.process.send_signal(signal.SIGTERM)
        errors = server.process.communicate(timeout=PATIENCE_S)[1]
        assert hanging.result().status_code == 503
    assert (server.process.returncode, errors) == (0, "")
