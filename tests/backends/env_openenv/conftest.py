"""The real OpenEnv in its own software stack, as the tests beside its client have it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agentc.runtime.software.lock_text import lock_digest

LOCK = Path(__file__).parents[1] / "environment_server" / "openenv.lock"
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def openenv_python() -> Path:
    """The interpreter that has `openenv`; 452 MB that no target of make builds."""
    folder = Path(os.environ.get("AGENTC_SOFTWARE", ROOT / ".agentc" / "software"))
    built = folder / lock_digest(LOCK.read_text())[:16]
    if not (built / "complete.json").exists():
        pytest.skip(f"OpenEnv is not built: python -m agentc.runtime.build_software {LOCK}")
    return built / "bin" / "python"


@pytest.fixture(scope="session")
def echo_world(openenv_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the environment that `openenv init` writes, as it writes it."""
    folder = tmp_path_factory.mktemp("echo")
    command = [str(openenv_python), "-m", "openenv.cli", "init", "echo_world"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder
