"""Interpreters: found where people have them, started once to see, and missed with a remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentc.runtime.software.interpreter import InterpreterMissingError, find_interpreter, probe

OWN = sys.version_info[:2]
OTHERS = [f"3.{minor}" for minor in range(8, 14) if (3, minor) != OWN]


def installed(version: str) -> str:
    """A real interpreter of that version on this machine; skips when there is none."""
    try:
        return find_interpreter(version).path
    except InterpreterMissingError:
        pytest.skip(f"this machine has no Python {version}")


def linked(folder: Path, version: str, target: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"python{version}"
    path.symlink_to(target)
    return path


def test_without_a_demand_it_is_the_interpreter_that_runs_this() -> None:
    found = find_interpreter(None)
    assert found.path == sys.executable
    assert find_interpreter(">=3.8") == found


@pytest.mark.parametrize("version", OTHERS)
def test_another_version_is_found_and_is_that_version(version: str) -> None:
    path = installed(version)
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == version


@pytest.mark.parametrize(
    "place",
    [
        ".pyenv/versions/{0}.7/bin",
        ".local/share/uv/python/cpython-{0}.7-linux-x86_64-gnu/bin",
        "miniforge3/bin",
        "miniconda3/envs/old/bin",
        ".asdf/installs/python/{0}.7/bin",
        ".local/share/mise/installs/python/{0}.7/bin",
    ],
)
def test_places_of_version_managers_are_looked_into(tmp_path: Path, place: str) -> None:
    version = OTHERS[0]
    target = installed(version)
    path = linked(tmp_path / place.format(version), version, os.path.realpath(target))
    found = find_interpreter(version, {"HOME": str(tmp_path), "PATH": ""})
    assert found.path == str(path)


def test_a_shim_that_starts_nothing_is_passed_over(tmp_path: Path) -> None:
    version = OTHERS[0]
    target = os.path.realpath(installed(version))
    shims = tmp_path / "shims"
    shims.mkdir()
    shim = shims / f"python{version}"
    shim.write_text("#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    real = linked(tmp_path / "bin", version, target)
    environ = {"PATH": f"{shims}:{real.parent}", "HOME": str(tmp_path)}
    assert find_interpreter(version, environ).path == str(real)
    assert "pyenv: command not found" in str(probe(str(shim)))


def test_the_variable_wins_and_is_never_passed_over(tmp_path: Path) -> None:
    version = OTHERS[0]
    target = os.path.realpath(installed(version))
    name = "AGENTC_PYTHON_" + version.replace(".", "_")
    path = linked(tmp_path / "mine", version, target)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), name: str(path)}
    assert find_interpreter(version, environ).path == str(path)
    with pytest.raises(InterpreterMissingError, match=rf"{name} names .*it is Python {OWN[0]}\."):
        find_interpreter(version, {**environ, name: os.path.realpath(sys.executable)})
    with pytest.raises(InterpreterMissingError, match="cannot be started"):
        find_interpreter(version, {**environ, name: str(tmp_path / "nothing")})


def test_missing_interpreter_says_what_was_looked_for_and_how_to_get_one(tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "python3.15"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(InterpreterMissingError) as caught:
        find_interpreter("3.15", {"PATH": str(broken.parent), "HOME": str(tmp_path)})
    message = str(caught.value)
    for part in (
        "needs Python 3.15",
        "python3.15 on PATH",
        f"{broken}: it does not work",
        "uv python install 3.15",
        "pyenv install 3.15",
        "apt install python3.15 python3.15-venv",
        "export AGENTC_PYTHON_3_15=",
    ):
        assert part in message


def test_demand_that_no_python_meets() -> None:
    with pytest.raises(InterpreterMissingError, match=r"no Python meets `<3.8`"):
        find_interpreter("<3.8")
