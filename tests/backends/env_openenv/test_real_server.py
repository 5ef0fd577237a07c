"""OpenEnv's own server with the environment that `openenv init` writes, unmodified: episodes, the
checks of every environment, and what it holds afterwards."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S

from agentc.backend_api import load_backends
from agentc.conformance import BackendUnderTest, Bench, Skipped
from agentc.conformance.serving import served_checks
from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.environments.external.launch import read_launch, start
from agentc_backends.environments.openenv.connection import OpenEnvUpstream
from agentc_backends.environments.openenv.environment import OpenEnvEnvironment
from agentc_backends.environments.openenv.job_serve import _survey as survey
from agentc_backends.environments.openenv.settings import OpenEnvSettings
from agentc_backends.software import LIGHT

pytestmark = pytest.mark.slow

WIDE = """
from echo_world.models import EchoWorldAction, EchoWorldObservation
from echo_world.server.echo_world_environment import EchoWorldEnvironment
from openenv.core.env_server.http_server import create_app

app = create_app(EchoWorldEnvironment, EchoWorldAction, EchoWorldObservation,
                 env_name="echo_world", max_concurrent_envs=32)
"""
"""What its own app.py does, for more than one session at a time."""


def launch(python: Path, folder: Path, app: str) -> dict[str, Any]:
    words = ["-m", "uvicorn", app, "--host", "{host}", "--port", "{port}"]
    command = [str(python), *words]
    return {
        "command": command,
        "cwd": str(folder),
        "ready_path": "/health",
        "ready_timeout_s": PATIENCE_S,
    }


def test_its_own_app_which_holds_one_session(
    openenv_python: Path, echo_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_ALLOW_LAUNCH", "1")
    started = start(read_launch(launch(openenv_python, echo_world, "echo_world.server.app:app")))
    try:
        settings = OpenEnvSettings(
            splits={"test": "0-2"},
            observation_fields=("echoed_message", "message_length"),
            reward={"highest": 20.0, "success_at": 1.0},
            url=started.url,
        )
        served = survey(OpenEnvUpstream(started.url, timeout_s=60.0), settings)
        assert served.about["name"] == "EchoWorldEnvironment"
        for task in ("openenv_0", "openenv_2"):
            # One after the other on a server with one place: each gives it back.
            played = OpenEnvEnvironment(served)
            text, _ = played.reset(task)
            assert text.endswith("environment ready!\nmessage_length: 0")
            assert played.step("hello")[:3] == (
                "echoed_message: hello\nmessage_length: 5",
                pytest.approx(0.5),
                False,
            )
            assert played.step("a longer message")[1] == pytest.approx(1.5)
            played.close()
    finally:
        started.end()


def test_the_checks_of_every_environment(
    openenv_python: Path, echo_world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_ALLOW_LAUNCH", "1")
    (echo_world / "wide.py").write_text(WIDE)
    table = load_backends()
    subject = BackendUnderTest(
        backend=table.backends["env.openenv"],
        bench=Bench(table=table, directory=tmp_path),
        given={
            "splits": {"train": {"range": [0, 4]}, "test": {"range": [4, 6]}},
            "reward": {"highest": 1000.0},
            "sessions": 32,
            "launch": launch(openenv_python, echo_world, "wide:app"),
        },
        pythons={lock_digest(LIGHT.lock): Path(sys.executable)},
    )
    skipped = []
    with ExitStack() as kept:
        for check in served_checks(subject, actions=["hello", "hello there", ""], kept=kept):
            try:
                check.run()
            except Skipped:
                skipped.append(check.name.removeprefix("serves: "))
    # The echo never ends.
    assert sorted(skipped) == ["after the end", "expert", "fork", "privileged", "snapshot"]
