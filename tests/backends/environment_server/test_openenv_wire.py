"""OpenEnv's messages, one by one, over real WebSockets."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest
from running import Running, Start
from tests.support.patience import PATIENCE_S
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

TOKEN = "secret"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def server(start: Start) -> Running:
    return start("textcraft", "--max-sessions", "4", token=TOKEN)


def opened(server: Running, **more: Any) -> ClientConnection:
    url = f"ws://{server.host}:{server.port}/ws"
    return connect(url, additional_headers=BEARER, proxy=None, **more)


def ask(connection: ClientConnection, **message: object) -> dict[str, Any]:
    connection.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(connection.recv(timeout=PATIENCE_S))
    return answer


def gone(server: Running) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while server.open_count() and time.monotonic() < deadline:
        time.sleep(0.05)
    return server.open_count() == 0


def test_a_connection_is_a_session_and_its_end_the_sessions(server: Running) -> None:
    task = server.tasks()[0]
    expected = server.play(task, ["inventory"])
    with opened(server) as connection:
        assert server.open_count() == 1
        first = ask(connection, type="reset", data={"task_id": task})
        assert first["type"] == "observation"
        assert first["data"]["observation"]["text"] == expected[0]["observation"]
        assert (first["data"]["reward"], first["data"]["done"]) == (0, False)
        after = ask(connection, type="step", data={"action": "inventory", "metadata": {}})
        assert after["data"]["observation"]["text"] == expected[1]["observation"]
        state = ask(connection, type="state")["data"]
        assert (state["task_id"], state["step_count"]) == (task, 1)
        connection.send(json.dumps({"type": "close"}))
        with pytest.raises(ConnectionClosed):
            connection.recv(timeout=PATIENCE_S)
    assert gone(server)
    with opened(server) as connection:
        ask(connection, type="reset", data={})
        # As when a client is killed: no word of farewell.
        connection.socket.shutdown(socket.SHUT_RDWR)
        assert gone(server)


def test_clients_that_name_no_task_get_one_after_another(server: Running) -> None:
    tasks, test = server.tasks(), server.tasks("test")
    with opened(server) as connection:
        for reset, task in (
            ({}, tasks[0]),
            ({"seed": 7}, tasks[7]),
            ({}, tasks[2]),
            ({"seed": len(test) + 3, "split": "test"}, test[3]),
            ({"task_id": test[5], "seed": 4}, test[5]),
        ):
            ask(connection, type="reset", data=reset)
            state = ask(connection, type="state")["data"]
            assert (state["task_id"], state["seed"]) == (task, reset.get("seed", 0))


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("{", "INVALID_JSON"),
        ("[]", "INVALID_JSON"),
        (b"\x00\xff", "INVALID_JSON"),
        ('{"type": "dance"}', "UNKNOWN_TYPE"),
        ('{"data": {}}', "UNKNOWN_TYPE"),
        ('{"type": "mcp", "data": {}}', "UNKNOWN_TYPE"),
        ('{"type": "step", "data": []}', "VALIDATION_ERROR"),
        ('{"type": "step"}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"action": 5}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"split": "none"}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"seed": "x"}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"task_id": "no such"}}', "EXECUTION_ERROR"),
    ],
)
def test_what_makes_no_sense_is_told_and_the_episode_goes_on(
    server: Running, sent: str | bytes, code: str
) -> None:
    with opened(server) as connection:
        ask(connection, type="reset", data={})
        connection.send(sent)
        answer = json.loads(connection.recv(timeout=PATIENCE_S))
        assert (answer["type"], answer["data"]["code"]) == ("error", code)
        after = ask(connection, type="step", data={"action": "inventory"})
        assert "Inventory" in after["data"]["observation"]["text"]


def test_a_message_that_is_too_long_ends_the_connection(server: Running) -> None:
    with opened(server) as connection:
        connection.send(json.dumps({"type": "step", "data": {"action": "a" * (2 << 20)}}))
        with pytest.raises(ConnectionClosed):
            connection.recv(timeout=PATIENCE_S)
    assert gone(server)


def test_a_full_server_says_so(server: Running) -> None:
    held = [server.post("/create")["id"] for _ in range(4)]
    with opened(server) as connection:
        answer = json.loads(connection.recv(timeout=PATIENCE_S))
        assert answer["data"]["code"] == "CAPACITY_REACHED"
    for number in held:
        server.post("/close", id=number)


def test_nobody_enters_without_the_token(server: Running) -> None:
    url = f"ws://{server.host}:{server.port}/ws"
    for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Basic !"}):
        with pytest.raises(InvalidStatus) as refused:
            connect(url, additional_headers=headers, proxy=None)
        assert refused.value.response.status_code == 401
    with pytest.raises(InvalidStatus):
        connect(url.replace("ws://", "ws://anybody:other@"), proxy=None)
    with connect(url.replace("ws://", f"ws://anybody:{TOKEN}@"), proxy=None) as connection:
        assert ask(connection, type="reset", data={})["type"] == "observation"


def test_what_openenv_asks_over_http(server: Running) -> None:
    assert server.client.get("/health").json() == {"status": "healthy"}
    metadata = server.client.get("/metadata").json()
    assert metadata["name"] == "textcraft"
    assert metadata["version"]
    schema = server.client.get("/schema").json()
    assert schema["action"]["required"] == ["action"]
    assert set(schema) == {"action", "observation", "state"}


def test_the_server_stops_with_connections_open(start: Start) -> None:
    server = start("textcraft")
    with connect(f"ws://{server.host}:{server.port}/ws", proxy=None) as connection:
        ask(connection, type="reset", data={})
        assert server.stop() == 0
        with pytest.raises(ConnectionClosed):
            connection.recv(timeout=PATIENCE_S)
    assert server.log.read_text() == ""
