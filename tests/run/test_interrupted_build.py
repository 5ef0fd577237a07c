"""A run that is ended while it builds a software stack: nobody is left behind, nothing
half-built is used, and the next run builds it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S, wait_for
from tiny_plan import TinyPlan

BACKEND = """\
import os, pathlib, time, zipfile
def build_wheel(to, config_settings=None, metadata_directory=None):
    here = pathlib.Path(os.environ["SLOW_PACKAGE"])
    (here / "started").write_text(str(os.getpid()))
    while not (here / "go").exists():
        time.sleep(0.05)
    name, info = "slowthing-1-py3-none-any.whl", "slowthing-1.dist-info/"
    with zipfile.ZipFile(os.path.join(to, name), "w") as out:
        out.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: slowthing\\nVersion: 1\\n")
        out.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n"
                     "Tag: py3-none-any\\n")
        out.writestr(info + "RECORD", "")
    return name
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package whose build waits for a file `go`."""
    folder = tmp_path / "slowthing"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "slowthing"\nversion = "1"\n'
    )
    (folder / "backend.py").write_text(BACKEND)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_ended_run_leaves_no_builder_behind(
    plan: TinyPlan, package: Path, tmp_path: Path, number: signal.Signals
) -> None:
    lock = f"# agentc: then SLOW_PACKAGE={package}\nslowthing @ file://{package}\n"
    plan.software("slow", "# agentc: unverified slowthing\n" + lock)
    plan.job("rows", rows=1, software="slow")
    variables = {**os.environ, "AGENTC_SOFTWARE": str(tmp_path / "software")}
    run = subprocess.Popen(
        plan.run_all_argv(),
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    builder = int(wait_for(lambda: _text(package / "started")))
    run.send_signal(number)
    _, said = run.communicate(timeout=PATIENCE_S)
    if number == signal.SIGKILL:
        assert run.returncode == -signal.SIGKILL
    else:
        assert run.returncode == 128 + number
        assert b"interrupted" in said
    wait_for(lambda: not Path(f"/proc/{builder}").exists())
    assert not list((tmp_path / "software").glob("*/complete.json"))
    (package / "go").write_text("")
    done = plan.run_all(AGENTC_SOFTWARE=variables["AGENTC_SOFTWARE"])
    assert done.returncode == 0, done.stderr
    assert plan.manifest("rows")["software"]["versions"] == {"slowthing": "1"}


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
