"""`agentc dev export openenv`: a package that is started as it lies plays what is played here, by
our client always, by OpenEnv's own where that is installed, and its validator."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.emit.played_here import played_here
from tests.support.patience import PATIENCE_S

from agentc.cli import main
from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.environments.openenv.connection import OpenEnvError, OpenEnvUpstream

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "tests/backends/environment_server/openenv.lock"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "textcraft_env"
    assert main(["dev", "export", "openenv", "textcraft", "max_depth=2", "-o", str(folder)]) == 0
    return folder


@contextmanager
def started(package: Path) -> Iterator[str]:
    """Its server, by its own `server/app.py` and nothing of this repository on the path."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "server/app.py", "--port", str(port)]
    variables = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "AGENTC_TOKEN")}
    process = subprocess.Popen(command, cwd=package, env=variables)
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE_S
    try:
        while True:
            try:
                OpenEnvUpstream(url, timeout_s=PATIENCE_S).get("/health")
                break
            except OpenEnvError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_its_server_plays_what_is_played_here(package: Path) -> None:
    actions, rows = played_here()
    with started(package) as url:
        about = OpenEnvUpstream(url, timeout_s=PATIENCE_S).get("/metadata")
        conversation, first = OpenEnvUpstream(url, timeout_s=PATIENCE_S).begin(
            {"split": "test", "seed": 3}
        )
        told = [first, *(conversation.ask("step", {"action": action}) for action in actions)]
        conversation.close()
    assert about["name"] == "textcraft"
    assert [[each["observation"]["text"], each["done"]] for each in told] == rows
    assert rows[-1][1]
    assert told[-1]["reward"] == 1.0


def test_what_no_package_can_hold_is_refused(
    tmp_path: Path, package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = ["url=http://127.0.0.1:1", "splits={test: {range: [0, 3]}}"]
    for words, says in (
        (["openenv", *url], "a third party"),
        (["detective"], "more than a list of pins"),
        (["guess_my_city", "oracle=model"], "as `simulator`"),
    ):
        assert main(["dev", "export", "openenv", *words, "-o", str(tmp_path / "new")]) != 0
        assert says in capsys.readouterr().err
        assert not (tmp_path / "new").exists()
    assert main(["dev", "export", "openenv", "textcraft", "-o", str(package)]) == 3
    assert "exists already" in capsys.readouterr().err


@pytest.mark.slow
def test_openenvs_own_client_and_validator(package: Path) -> None:
    folder = Path(os.environ.get("AGENTC_SOFTWARE", ROOT / ".agentc" / "software"))
    built = folder / lock_digest(LOCK.read_text())[:16]
    if not (built / "complete.json").exists():
        pytest.skip(f"OpenEnv is not built: python -m agentc.runtime.build_software {LOCK}")
    python = str(built / "bin" / "python")
    actions, rows = played_here()
    with started(package) as url:
        player = str(Path(__file__).with_name("openenv_player.py"))
        command = [python, player, str(package), url, *actions]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [[text, over] for text, _, over in told] == rows
    assert told[-1][1] == 1.0
    command = [python, "-m", "openenv.cli", "validate", str(package), "--level", "static", "--json"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
