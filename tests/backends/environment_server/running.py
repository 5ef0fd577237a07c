"""Environment servers in processes of their own, by name, as the tests of this folder need them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest
from tests.support.patience import PATIENCE_S

from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.software import SCIWORLD

ROOT = Path(__file__).parents[3]
FOLDER = Path(__file__).parent
PYTHON_PATH = os.pathsep.join(str(ROOT / part) for part in ("compiler", "backends"))
_BELL = [str(FOLDER / "bell.py")]


def built(lock: str, missing: str) -> Path:
    """The interpreter of the environment with this lock; where it is not built the test is
    skipped, with the reason `missing`."""
    folder = Path(os.environ.get("AGENTC_SOFTWARE", ROOT / ".agentc" / "software"))
    digest = lock_digest(lock)[:16]
    if not (folder / digest / "complete.json").exists():
        pytest.skip(missing)
    return folder / digest / "bin" / "python"


def _program(name: str) -> list[str]:
    if name == "bell":
        return [sys.executable, *_BELL]
    python = sys.executable
    if name == "sciworld":
        python = str(built(SCIWORLD.text, "the software stack `sciworld` is not built"))
    return [python, "-m", f"agentc_backends.environments.{name}.job_serve"]


class Running:
    """A server; `client` speaks HTTP to it with the token that it was given."""

    def __init__(self, name: str, folder: Path, *flags: str, token: str | None = None) -> None:
        ready = folder / "ready.json"
        self.log = folder / "log.txt"
        variables = {**os.environ, "PYTHONPATH": PYTHON_PATH, "AGENTC_TOKEN": token or ""}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*_program(name), "--die-with-parent", "--ready-file", str(ready), *flags],
                env=variables,
                cwd=folder,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)
        address = json.loads(ready.read_text())
        self.host, self.port = address["host"], address["port"]
        self.url = f"http://{self.host}:{self.port}"
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.client = httpx2.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S)

    def post(self, path: str, **body: object) -> Any:
        return self.client.post(path, json=body).json()

    def open_count(self) -> int:
        count: int = self.client.get("/sessions").json()["open"]
        return count

    def tasks(self, split: str = "train") -> list[str]:
        tasks: list[str] = self.client.get("/meta").json()["splits"][split]
        return tasks

    def plan(self, task_id: str) -> list[str]:
        steps = self.post("/expert", task_id=task_id)["steps"]
        return [step["action"] for step in steps]

    def play(self, task_id: str, actions: list[str]) -> list[dict[str, Any]]:
        """A whole episode, asked for in the plain way; the first reply is the reset's."""
        number = self.post("/create")["id"]
        replies = [self.post("/reset", id=number, task_id=task_id)]
        replies += [self.post("/step", id=number, action=action) for action in actions]
        self.post("/close", id=number)
        return replies

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        self.client.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


Start: TypeAlias = Callable[..., Running]
