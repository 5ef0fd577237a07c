"""AgentGym-protocol servers in processes of their own, with the adapter before them.

`ours` is env.textcraft, which answers AgentGym's routes; `released` is AgentGym's own TextCraft
server, where AGENTC_AGENTGYM names a checkout of WooooDyy/AgentGym (and AGENTC_AGENTGYM_PYTHON an
interpreter that has fastapi, uvicorn and gymnasium).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.patience import PATIENCE_S

from agentc_backends.environments.external.launch import ALLOW

ROOT = Path(__file__).parents[3]
PYTHON_PATH = os.pathsep.join(str(ROOT / part) for part in ("compiler", "backends"))
SPLITS = {"train": "31-60", "test": "0-30"}
TOKEN = "agentgym-token"


def ours() -> dict[str, Any]:
    """A launch of env.textcraft."""
    program = [
        sys.executable,
        "-m",
        "agentc_backends.environments.textcraft.job_serve",
        "--port",
        "{port}",
    ]
    variables = {"PYTHONPATH": PYTHON_PATH}
    return {"command": program, "variables": variables, "ready_path": "/health"}


def released() -> dict[str, Any]:
    """A launch of AgentGym's TextCraft server."""
    checkout = os.environ.get("AGENTC_AGENTGYM")
    if not checkout:
        pytest.skip("AGENTC_AGENTGYM names no checkout of AgentGym")
    python = os.environ.get("AGENTC_AGENTGYM_PYTHON", sys.executable)
    program = [python, "-m", "uvicorn", "agentenv_textcraft:app", "--port", "{port}"]
    return {"command": program, "cwd": str(Path(checkout) / "agentenv-textcraft")}


UPSTREAMS: Mapping[str, Callable[[], dict[str, Any]]] = {"ours": ours, "released": released}


class Adapter:
    """A running adapter, and a client of it."""

    def __init__(self, directory: Path, *flags: str, allow: bool = True) -> None:
        self.ready_file = directory / "ready.json"
        self.log = directory / "log.txt"
        command = [sys.executable, "-m", "agentc_backends.environments.agentgym.job_serve"]
        command += ["--die-with-parent", "--ready-file", str(self.ready_file)]
        variables = {**os.environ, "PYTHONPATH": PYTHON_PATH, "AGENTC_TOKEN": TOKEN}
        variables[ALLOW] = "1" if allow else ""
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, *flags], env=variables, stdout=log, stderr=log
            )
        self.client = httpx2.Client(
            headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_S
        )

    def await_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.ready_file.exists():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)
        address = json.loads(self.ready_file.read_text())
        self.client.base_url = f"http://{address['host']}:{address['port']}"

    def meta(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get("/meta").json()
        return found

    def post(self, path: str, **body: object) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def open(self, task_id: str) -> tuple[int, str]:
        session = self.post("/create")["id"]
        return session, self.post("/reset", id=session, task_id=task_id, seed=0)["observation"]

    def end(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=PATIENCE_S)


StartAdapter = Callable[..., Adapter]


@pytest.fixture
def start_adapter(tmp_path: Path) -> Iterator[StartAdapter]:
    """`start_adapter(launch, splits=..., flags=[...])`; `ready=False` does not wait."""
    adapters: list[Adapter] = []

    def start(
        launch: Mapping[str, Any],
        *flags: str,
        server: str = "textcraft",
        splits: Mapping[str, str] = SPLITS,
        ready: bool = True,
        allow: bool = True,
    ) -> Adapter:
        directory = tmp_path / f"adapter-{len(adapters)}"
        directory.mkdir()
        place = ["--launch", json.dumps(launch), "--splits", json.dumps(splits)]
        adapters.append(Adapter(directory, "--server", server, *place, *flags, allow=allow))
        if ready:
            adapters[-1].await_ready()
        return adapters[-1]

    yield start
    for adapter in adapters:
        adapter.end()


@pytest.fixture(scope="module", params=sorted(UPSTREAMS))
def adapter(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Adapter]:
    """One adapter for the tests of a module that leave it as they found it."""
    launch = UPSTREAMS[request.param]()
    directory = tmp_path_factory.mktemp("adapter")
    place = ["--launch", json.dumps(launch), "--splits", json.dumps(SPLITS)]
    running = Adapter(directory, "--server", "textcraft", *place)
    running.await_ready()
    yield running
    running.end()
