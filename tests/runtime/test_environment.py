"""Software environments: built from a lock, once, and never used half-built."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
from tiny_plan import wait_for

from agentc.runtime.environment import (
    SoftwareEnvironmentError,
    code_directory,
    ensure_environment,
    read_complete,
)
from agentc.runtime.layout import StoreLayout


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreLayout:
    monkeypatch.delenv("AGENTC_ENVIRONMENTS")
    return StoreLayout(tmp_path / "store")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel with one module; small, local, and real to pip."""
    path = tmp_path / "tinything-1.2-py3-none-any.whl"
    info = "tinything-1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tinything.py", "VALUE = 42\n")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tinything\nVersion: 1.2\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_lock_is_installed_and_recorded(layout: StoreLayout, wheel: Path) -> None:
    lock = f"tinything @ file://{wheel}\n"
    lines: list[str] = []
    directory, known = ensure_environment(layout, sha256(lock), lock, lines.append)
    assert directory == layout.root / "environments" / sha256(lock)[:16]
    assert known["versions"] == {"tinything": "1.2"}
    assert known == read_complete(directory)
    argv = [str(directory / "bin" / "python"), "-c", "import tinything; print(tinything.VALUE)"]
    assert subprocess.run(argv, capture_output=True, check=True).stdout == b"42\n"
    assert any("1 packages" in line for line in lines)
    again: list[str] = []
    ensure_environment(layout, sha256(lock), lock, again.append)
    assert again == []


def test_lock_that_cannot_be_installed_says_what_pip_said(layout: StoreLayout) -> None:
    lock = "tinything @ file:///nowhere/tinything-1.2-py3-none-any.whl\n"
    with pytest.raises(SoftwareEnvironmentError, match=r"nowhere/tinything"):
        ensure_environment(layout, sha256(lock), lock)
    assert read_complete(layout.environment(sha256(lock))) is None


def test_half_built_environment_is_built_again(layout: StoreLayout, wheel: Path) -> None:
    lock = f"tinything @ file://{wheel}\n"
    half = layout.environment(sha256(lock))
    (half / "bin").mkdir(parents=True)
    (half / "bin" / "python").write_text("not an interpreter")
    (half / "left").write_text("x")
    ensure_environment(layout, sha256(lock), lock)
    assert not (half / "left").exists()


def test_killed_build_is_never_used(layout: StoreLayout, wheel: Path, tmp_path: Path) -> None:
    lock = f"tinything @ file://{wheel}\n"
    script = (
        "import sys; from agentc.runtime.environment import ensure_environment as e;"
        "from agentc.runtime.layout import StoreLayout as S; e(S(sys.argv[1]), *sys.argv[2:4])"
    )
    argv = [sys.executable, "-c", script, str(layout.root), sha256(lock), lock]
    directory = layout.environment(sha256(lock))
    for moment in (0.05, 0.3):
        process = subprocess.Popen(argv)
        wait_for(directory.exists)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run(argv, check=True).returncode == 0
    known = read_complete(directory)
    assert known is not None
    assert known["versions"] == {"tinything": "1.2"}


def test_concurrent_builders_build_once(layout: StoreLayout, wheel: Path) -> None:
    lock = f"tinything @ file://{wheel}\n"
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(ensure_environment(layout, sha256(lock), lock))
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({json.dumps(known, sort_keys=True) for _, known in found}) == 1


def test_shared_folder_serves_two_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wheel: Path
) -> None:
    monkeypatch.setenv("AGENTC_ENVIRONMENTS", str(tmp_path / "shared"))
    lock = f"tinything @ file://{wheel}\n"
    one, _ = ensure_environment(StoreLayout(tmp_path / "a"), sha256(lock), lock)
    two, _ = ensure_environment(StoreLayout(tmp_path / "b"), sha256(lock), lock)
    assert one == two
    assert one.parent == tmp_path / "shared"


def test_code_directory_holds_links_to_the_packages(layout: StoreLayout) -> None:
    import agentc

    directory = code_directory(layout, ["agentc"])
    assert (directory / "agentc").resolve() == Path(agentc.__file__).parent
    assert code_directory(layout, ["agentc"]) == directory
    script = "import agentc.runtime.program as p; print(p.__name__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env={"PYTHONPATH": str(directory), "PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"agentc.runtime.program\n"


def test_package_that_is_not_installed_is_named(layout: StoreLayout) -> None:
    with pytest.raises(SoftwareEnvironmentError, match="the Python package no_such_backend"):
        code_directory(layout, ["no_such_backend"])
