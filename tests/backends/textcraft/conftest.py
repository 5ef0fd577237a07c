"""Fixtures for TextCraft: the recipe book, and a server in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.patience import PATIENCE_S

import agentc_backends
from agentc_backends.environments.textcraft.recipes import RecipeBook, load_recipe_book

PACKAGE_ROOT = Path(agentc_backends.__file__).parents[1]
StartServer = Callable[..., "RunningServer"]


class RunningServer:
    """A started server process and an HTTP client for it."""

    def __init__(self, directory: Path, *flags: str, token: str | None = None) -> None:
        ready_file = directory / "ready.json"
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE_ROOT)}
        environment.pop("AGENTC_TOKEN", None)
        if token is not None:
            environment["AGENTC_TOKEN"] = token
        command = [sys.executable, "-m", "agentc_backends.environments.textcraft.job_serve"]
        command += ["--die-with-parent", "--ready-file", str(ready_file), *flags]
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE_S
        while not ready_file.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError(f"the server did not start: {self.process.communicate()[1]}")
            time.sleep(0.02)
        self.ready: dict[str, Any] = json.loads(ready_file.read_text())
        url = f"http://{self.ready['host']}:{self.ready['port']}"
        self.client = httpx2.Client(base_url=url, timeout=PATIENCE_S)

    def post(self, path: str, **body: object) -> Any:
        response = self.client.post(path, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    def stop(self) -> tuple[int, str]:
        """The exit status after SIGTERM, and what was written to stderr."""
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        errors = self.process.communicate(timeout=PATIENCE_S)[1]
        return self.process.returncode, errors


@pytest.fixture(scope="session")
def book() -> RecipeBook:
    return load_recipe_book()


@pytest.fixture
def start_server(book: RecipeBook, tmp_path: Path) -> Iterator[StartServer]:
    servers: list[RunningServer] = []

    def start(*flags: str, token: str | None = None) -> RunningServer:
        directory = tmp_path / str(len(servers))
        directory.mkdir()
        servers.append(RunningServer(directory, *flags, token=token))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def server(book: RecipeBook, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for the tests of a module that leave it as they found it."""
    running = RunningServer(tmp_path_factory.mktemp("server"))
    yield running
    running.stop()
