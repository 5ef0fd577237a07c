"""Runs a job program as the runtime does: a job file, a process of its own, a staging folder; and
the servers that it leases, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
POLICY_SERVER = Path(__file__).parent / "rollout" / "policy_server.py"


@dataclass(frozen=True, slots=True)
class JobRun:
    """Where a job ran and how it ended."""

    staging: Path
    code: int
    output: str

    @property
    def data(self) -> Path:
        return self.staging / "data"

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads((self.staging / "facts.json").read_text("utf-8"))
        return facts

    def rows(self, name: str) -> list[dict[str, Any]]:
        lines = (self.data / name).read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]


RunJob = Callable[..., JobRun]


def write_job(
    staging: Path,
    config: Mapping[str, Any],
    *,
    inputs: Mapping[str, Sequence[Path]] | None = None,
    placement: Mapping[str, Any] | None = None,
    leases: Mapping[str, Any] | None = None,
    contract: Mapping[str, Any] | None = None,
    stop_by: float | None = None,
) -> Path:
    """A staging folder with its job file (docs/design/contracts.md, section 3)."""
    for folder in ("data", "work", "logs"):
        (staging / folder).mkdir(parents=True, exist_ok=True)
    job = {
        "id": "test",
        "key": "0" * 32,
        "kind": "test",
        "config": config,
        "placement": placement or {},
        "contract": contract or {},
        "inputs": {role: [str(p) for p in paths] for role, paths in (inputs or {}).items()},
        "input_objects": {role: [str(p) for p in paths] for role, paths in (inputs or {}).items()},
        "out": str(staging / "data"),
        "work": str(staging / "work"),
        "logs": str(staging / "logs"),
        "facts": str(staging / "facts.json"),
        "progress": str(staging / "progress.json"),
        "leases": leases or {},
        **({} if stop_by is None else {"stop_by": stop_by}),
    }
    path = staging / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    return path


def job_command(module: str, job: Path) -> list[str]:
    return [sys.executable, "-m", module, str(job)]


def job_environment() -> dict[str, str]:
    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    return {**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "1"}


@pytest.fixture
def run_job(tmp_path: Path) -> RunJob:
    """`run_job(module, config, inputs=..., placement=..., leases=..., staging=...)`."""

    def run(module: str, config: Mapping[str, Any], **rest: Any) -> JobRun:
        staging = rest.pop("staging", tmp_path / "staging")
        timeout = rest.pop("timeout", PATIENCE_S)
        job = write_job(staging, config, **rest)
        done = subprocess.run(
            job_command(module, job),
            cwd=staging,
            env=job_environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return JobRun(staging, done.returncode, done.stdout + done.stderr)

    return run


@pytest.fixture
def job_process() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a job program and leaves it running: `job_process(module, config, placement, leases,
    staging)`."""
    started: list[subprocess.Popen[str]] = []

    def start(
        module: str,
        config: Mapping[str, Any],
        placement: Mapping[str, Any],
        leases: Mapping[str, Any],
        staging: Path,
        inputs: Mapping[str, Sequence[Path]] | None = None,
    ) -> subprocess.Popen[str]:
        job = write_job(staging, config, inputs=inputs, placement=placement, leases=leases)
        process = subprocess.Popen(
            job_command(module, job),
            cwd=staging,
            env=job_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@dataclass(frozen=True, slots=True)
class Started:
    """A server that a test started."""

    process: subprocess.Popen[bytes]
    lease: dict[str, Any]


Start = Callable[..., Started]


class Servers:
    """Starts servers in processes of their own, and ends them all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Started] = []
        self._by_words: dict[tuple[str, ...], Started] = {}

    def start(self, name: str, command: Sequence[str], token: str, **lease: Any) -> Started:
        ready = self._folder / f"{name}-{len(self._started)}.json"
        process = subprocess.Popen(
            [sys.executable, *[word.replace("READY", str(ready)) for word in command]],
            env={**job_environment(), "AGENTC_TOKEN": token},
            start_new_session=True,
        )
        server = Started(process, {"token": token, **lease})
        self._started.append(server)
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            assert process.poll() is None, f"{name} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{name} is not ready"
            time.sleep(0.02)
        address = json.loads(ready.read_text("utf-8"))
        server.lease["url"] = f"http://{address['host']}:{address['port']}"
        return server

    def share(self, name: str, command: Sequence[str], token: str, **lease: Any) -> Started:
        """One that the same words started before, where it still runs. The lease is the test's."""
        words = (token, *command)
        if words not in self._by_words or self._by_words[words].process.poll() is not None:
            self._by_words[words] = self.start(name, command, token)
        server = self._by_words[words]
        return Started(server.process, {**server.lease, **lease})

    def end(self) -> None:
        for server in self._started:
            server.process.kill()
            server.process.wait()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server for one test."""
    servers = Servers(tmp_path)
    yield servers.start
    servers.end()


@pytest.fixture(scope="session")
def share(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts a server, or finds it, for tests that neither end it nor count what it was asked."""
    servers = Servers(tmp_path_factory.mktemp("servers"))
    yield servers.share
    servers.end()


TEXTCRAFT = [
    "-m",
    "agentc_backends.environments.textcraft.job_serve",
    "--port",
    "0",
    "--ready-file",
    "READY",
]


@pytest.fixture
def environment(share: Start) -> Started:
    """TextCraft's server."""
    return share("environment", TEXTCRAFT, "environment-token")


@pytest.fixture
def policy(share: Start, start: Start) -> Callable[..., Started]:
    """`policy(mode, delay, own=True)`: that of policy_server.py; `own` for one to end or count."""

    def launch(mode: str = "mixed", delay: float = 0.0, own: bool = False) -> Started:
        command = [str(POLICY_SERVER), "READY", "--mode", mode, "--delay", str(delay)]
        found = (start if own else share)("policy", command, "policy-token")
        return Started(found.process, {**found.lease, "model": "policy", "log": "policy.log"})

    return launch


def leases(policy: Started, environment: Started) -> dict[str, Any]:
    return {"policy": policy.lease, "environment": environment.lease}
