"""The server in a process of its own: recorded exchanges, forks, concurrency, life and death."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S, wait_for

import agentc_backends
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment

RECORDING = "data/agent_r_fixtures/textcraft_session.jsonl"
DIAMOND_BLOCK = "minecraft:diamond_block"


@pytest.fixture(scope="module")
def recording() -> list[dict[str, Any]]:
    """Exchanges of AgentGym's TextCraft server, recorded from its released code."""
    default = Path(__file__).parents[4] / "shared"
    path = Path(os.environ.get("AGENTC_SHARED", default)) / RECORDING
    if not path.exists():
        pytest.skip(f"no recorded exchanges at {path}; set AGENTC_SHARED")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_recorded_session(start_server: Any, recording: list[dict[str, Any]]) -> None:
    server = start_server()
    session, number_in_recording = None, 0
    compared = 0
    for exchange in recording:
        path, request, expected = exchange["path"], exchange["request"], exchange["response"]
        if path == "/goal?id=0":
            continue  # AgentGym answers 500.
        if path == "/reset":
            # Goals are numbered differently: the recording's 31 is the diamond block.
            request = {"id": request["id"], "task_id": DIAMOND_BLOCK}
        response = server.client.request(exchange["method"], path, json=request)
        assert response.status_code == exchange["status"], exchange
        reply = response.json()
        compared += 1
        if path == "/create" and exchange["status"] == 200:
            session = reply["id"]
            assert session == number_in_recording
            server.post("/reset", id=session, task_id="minecraft:acacia_planks")
            assert server.client.get(f"/observation?id={session}").json() == expected["observation"]
        elif path == "/reset":
            assert sorted(reply["observation"].split("\n")[-1:]) == ["Goal: craft diamond block."]
            assert "craft 1 diamond block using 9 diamond" in reply["observation"]
            assert {**reply, "observation": ""} == {**expected, "observation": ""}
        elif (
            isinstance(expected, dict)
            and "inventory" in str(request)
            and "[diamond block]" in str(expected)
        ):
            # The recording forgets that the episode is over; ours does not (see the README).
            assert reply == {**expected, "done": True}
        elif path.startswith("/detail") and "[diamond block]" in str(expected):
            assert reply == {**expected, "done": True}
        else:
            assert reply == expected, exchange
    assert compared == len(recording) - 1


def test_data_idx_counts_the_sorted_goals(server: Any) -> None:
    goals = sorted(TextCraftEnvironment().catalogue.lists.known)
    session = server.post("/create")["id"]
    by_index = server.post("/reset", id=session, data_idx=31)
    assert by_index == server.post("/reset", id=session, task_id=goals[31])
    seeded = server.post("/reset", id=session, task_id=goals[31], seed=5)
    assert seeded["observation"] != by_index["observation"]
    missing = server.client.post("/reset", json={"id": session, "data_idx": len(goals)})
    assert missing.status_code == 404


def test_stops_even_with_a_stalled_client(start_server: Any) -> None:
    server = start_server()
    server.post("/create")
    address = (server.ready["host"], server.ready["port"])
    with socket.create_connection(address) as stalled:
        stalled.sendall(b"POST /create HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        time.sleep(0.1)
        status, errors = server.stop()
    assert (status, errors) == (0, "")


def test_a_client_that_leaves_in_the_middle_is_no_error(start_server: Any) -> None:
    server = start_server()
    with socket.create_connection((server.ready["host"], server.ready["port"])) as leaving:
        leaving.sendall(b"POST /create HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        time.sleep(0.05)
    assert server.client.get("/health").status_code == 200
    assert server.stop() == (0, "")


def test_dies_with_its_parent(book: object, tmp_path: Path) -> None:
    ready_file = tmp_path / "ready.json"
    program = (
        "import subprocess, sys, time, pathlib\n"
        "subprocess.Popen([sys.executable, '-m',"
        "'agentc_backends.environments.textcraft.job_serve',"
        f" '--die-with-parent', '--ready-file', {str(ready_file)!r}])\n"
        f"while not pathlib.Path({str(ready_file)!r}).exists(): time.sleep(0.02)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(agentc_backends.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=PATIENCE_S)
    ready = json.loads(ready_file.read_text())

    def refused() -> bool:
        try:
            socket.create_connection((ready["host"], ready["port"])).close()
        except ConnectionError:
            return True
        return False

    wait_for(refused)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--host", "0.0.0.0"], "AGENTC_TOKEN"),
        (["--max-depth", "0"], "'max_depth' is 0; expected 1 or more"),
        (["--max-expert-steps", "1"], "no TextCraft task is left"),
        (["--recipe-directory", "/nonexistent"], "no crafting recipe"),
    ],
)
def test_refuses_to_start(book: object, flags: list[str], message: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(agentc_backends.__file__).parents[1])}
    environment.pop("AGENTC_TOKEN", None)
    command = [sys.executable, "-m", "agentc_backends.environments.textcraft.job_serve", *flags]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert result.returncode == 2
    assert message in result.stderr
