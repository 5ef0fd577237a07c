"""The server of the soak, started as a job's lease starts it, and what the kernel says of it.

Neighbour: `soak.py`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2

from agentc.backend_api import EnvironmentBackend, load_backends
from agentc.conformance import BackendUnderTest, Bench, Skipped
from agentc.conformance.programs import built_pythons
from agentc.conformance.serving import lease_of
from agentc.runtime.servers.job_leases import fill_placeholders
from agentc.runtime.servers.server_log import last_lines
from agentc.runtime.software.job_software import code_directory, job_variables
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import module_of
from agentc_backends.software import LIGHT

TOKEN = "soak-token"
_LIGHT_PACKAGES = ("httpx2", "starlette", "uvicorn", "websockets")
_READY_SECONDS = 180.0
_END_SECONDS = 15.0


class NotHereError(Exception):
    """The environment cannot be started here; the message says why."""


def served_environments() -> list[str]:
    """The environments of the table that need no settings, by the names that specs use."""
    found = [b for b in load_backends() if isinstance(b, EnvironmentBackend) and b.available]
    return [b.id.removeprefix("env.") for b in found if not any(f.required for f in b.fields)]


class SoakedServer:
    """A server that is killed and started again at the same address.

    `files` is where a spec would lie: beside what its environment needs and is not ours to ship.
    """

    def __init__(self, environment: str, folder: Path, files: Path | None = None) -> None:
        table = load_backends()
        backend = next((b for b in table if b.id == f"env.{environment}"), None)
        if not isinstance(backend, EnvironmentBackend) or not backend.available:
            raise NotHereError(f"there is no environment {environment!r}")
        pythons = built_pythons(StoreLayout(".agentc/store"))
        if all(find_spec(name) for name in _LIGHT_PACKAGES):
            pythons[lock_digest(LIGHT.lock)] = Path(sys.executable)
        subject = BackendUnderTest(
            backend=backend, bench=Bench(table=table, directory=files or folder), pythons=pythons
        )
        try:
            lease, self._python = lease_of(subject)
        except Skipped as reason:
            raise NotHereError(str(reason)) from None
        self._program = lease.draft.program
        self._settings = folder / "settings.json"
        self._settings.write_text(json.dumps(lease.draft.settings), encoding="utf-8")
        self._folder = folder
        self._beside = files or folder
        self._starts = 0
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        code = code_directory(StoreLayout(folder), [module_of(self._program)])
        self._variables = {**job_variables(code, 1, False, {}), "AGENTC_TOKEN": TOKEN}
        self._client = httpx2.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60
        )
        self._process = self._start()

    def census(self) -> dict[str, Any]:
        counts: dict[str, Any] = self._client.get("/sessions").json()
        return counts

    def memory_mib(self) -> float:
        """Resident memory of the server itself."""
        return _resident_mib(self._process.pid)

    def children_mib(self) -> list[float]:
        """Resident memory of each process that the server has started."""
        return [_resident_mib(pid) for pid in self._group() if pid != self._process.pid]

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self._process.pid}/task").iterdir()))

    def files(self) -> int:
        return len(list(Path(f"/proc/{self._process.pid}/fd").iterdir()))

    def kill_and_restart(self) -> int:
        """How many processes the killed one has left behind."""
        self._process.kill()
        left = self._end()
        self._process = self._start()
        return left

    def stop(self) -> int:
        """How many processes are left when the server has ended as it is told to."""
        self._client.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        self._starts += 1
        ready = self._folder / f"ready-{self._starts}.json"
        log = self._folder / f"server-{self._starts}.txt"
        values = {
            "{ready_file}": str(ready), "{settings}": str(self._settings),
            "{host}": "127.0.0.1", "{port}": str(self._port),
        }  # fmt: skip
        # Said again: leases leave the choice of a port to the server.
        argv = [
            *fill_placeholders([*self._program], values),
            "--port",
            str(self._port),
            "--die-with-parent",
        ]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(self._python), *argv],
                cwd=self._beside,
                env=self._variables,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + _READY_SECONDS
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise NotHereError(f"the server does not start: {last_lines(log, 5)}")
            time.sleep(0.02)
        return process

    def _end(self) -> int:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        deadline = time.monotonic() + _END_SECONDS
        while (left := len(list(self._group()))) and time.monotonic() < deadline:
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return left

    def _group(self) -> Iterator[int]:
        """The processes of the server's session, which outlives it."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError, ProcessLookupError):
                    if os.getsid(int(entry.name)) == self._process.pid:
                        yield int(entry.name)


def _resident_mib(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
