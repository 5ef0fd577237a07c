"""Building goes wrong: killed at any moment, raced by others, without a disk or a network."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S, wait_for
from wheels import addressed, write_wheel

from agentc.runtime.software.installer import explain_failure
from agentc.runtime.software.job_software import (
    SoftwareError,
    ensure_software,
    read_complete,
)
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout

_BUILD = (
    "import sys; from agentc.runtime.software.job_software import ensure_software as e;"
    "from agentc.runtime.store.layout import StoreLayout as S;"
    "e(S(sys.argv[1]), *sys.argv[2:4], print)"
)
_USE = "import first, second; print(first.VALUE + second.VALUE)"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreLayout:
    monkeypatch.delenv("AGENTC_SOFTWARE", raising=False)
    return StoreLayout(tmp_path / "store")


@pytest.fixture
def lock(tmp_path: Path) -> str:
    """Two steps with a wheel each, so that there is a moment between them."""
    wheels = [
        write_wheel(tmp_path, name, "1", {f"{name}.py": "VALUE = 21\n"})
        for name in ("first", "second")
    ]
    return f"{addressed('first', wheels[0])}\n# agentc: then\n{addressed('second', wheels[1])}\n"


def argv(layout: StoreLayout, lock: str) -> list[str]:
    return [sys.executable, "-c", _BUILD, str(layout.root), sha256(lock), lock]


def works(layout: StoreLayout, lock: str) -> bool:
    python = layout.software_stack(sha256(lock)) / "bin" / "python"
    done = subprocess.run([str(python), "-c", _USE], capture_output=True, text=True, check=False)
    return done.stdout == "42\n"


@pytest.mark.slow
def test_killed_at_random_moments_it_is_whole_or_not_there(layout: StoreLayout, lock: str) -> None:
    began = time.monotonic()
    subprocess.run(argv(layout, lock), check=True, capture_output=True)
    whole = time.monotonic() - began
    directory = layout.software_stack(sha256(lock))
    choose = random.Random(7)
    cut_off = built = 0
    while cut_off < 3 or cut_off + built < 12:
        # Another lock each time would be another environment: take the finished one away.
        if read_complete(directory) is not None:
            directory.rename(directory.with_name(f"taken-{time.monotonic_ns()}"))
        process = subprocess.Popen(argv(layout, lock), stdout=subprocess.DEVNULL)
        time.sleep(choose.uniform(0.0, whole))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if read_complete(directory) is None:
            cut_off += 1
        else:
            assert works(layout, lock)
            built += 1
            whole *= 0.9  # the machine may be faster now
    subprocess.run(argv(layout, lock), check=True, capture_output=True)
    assert works(layout, lock)


@pytest.mark.slow
def test_two_builders_in_two_processes_build_once(layout: StoreLayout, lock: str) -> None:
    builders = [
        subprocess.Popen(argv(layout, lock), stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [builder.communicate(timeout=PATIENCE_S)[0] for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0]
    assert sorted("creating a virtual environment" in text for text in said) == [False, True]
    assert works(layout, lock)


@pytest.mark.slow
def test_no_process_of_a_killed_builder_goes_on(layout: StoreLayout, lock: str) -> None:
    directory = layout.software_stack(sha256(lock))
    process = subprocess.Popen(argv(layout, lock), stdout=subprocess.DEVNULL)
    wait_for(directory.exists)
    process.send_signal(signal.SIGKILL)
    process.wait()

    def nobody() -> bool:
        return not any(
            str(directory).encode() in line
            for entry in Path("/proc").glob("[0-9]*/cmdline")
            for line in [_read(entry)]
        )

    wait_for(nobody)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk takes root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_named_with_a_remedy(
    layout: StoreLayout, small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_SOFTWARE", str(small_disk / "software"))
    # Not to be compressed away: pip copies what it unpacks.
    noise = random.Random(1).randbytes(4_000_000).hex()
    wheel = write_wheel(tmp_path, "large", "1", {"large.py": f"VALUE = '{noise}'\n"})
    lock = f"{addressed('large', wheel)}\n"
    with pytest.raises(SoftwareError) as caught:
        ensure_software(layout, sha256(lock), lock)
    first, second = str(caught.value).splitlines()[:2]
    assert first.startswith("the disk is full: ")
    assert str(small_disk) in first
    assert "AGENTC_SOFTWARE" in second
    assert read_complete(layout.software_stack(sha256(lock))) is None


@pytest.mark.slow
def test_no_network_is_named_with_a_remedy(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    lock = f"somepackage==1.0 --hash=sha256:{'0' * 64}\n"
    with pytest.raises(SoftwareError) as caught:
        ensure_software(layout, lock_digest(lock), lock)
    first, second = str(caught.value).splitlines()[:2]
    assert first == "the package index cannot be reached from this machine"
    assert "agentc software sync" in second


def test_a_folder_that_cannot_be_written_to_is_named(
    layout: StoreLayout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENTC_SOFTWARE", str(tmp_path / "file" / "software"))
    with pytest.raises(SoftwareError, match="cannot be written to"):
        ensure_software(layout, sha256(""), "")


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("  cause: Because there is no version of torch==9.9 and you require torch==9.9, we can "
         "conclude that your requirements are unsatisfiable.", "has no torch==9.9"),
        ("  cause: Because torch was not found in the provided package locations", "has no torch"),
        ("error: command 'gcc' failed: No such file or directory", "has no compiler"),
        ("/usr/bin/python3: No module named venv", "module venv is missing"),
        ("ModuleNotFoundError: No module named 'torch'", "another one to be there before it"),
        ("something nobody has seen", "the installation failed"),
    ],
)  # fmt: skip
def test_what_uv_reports_is_explained(said: str, cause: str, tmp_path: Path) -> None:
    message = explain_failure(["Collecting x", *said.splitlines()], tmp_path)
    assert cause in message.splitlines()[0]
    assert message.endswith(f"  | {said.splitlines()[-1]}")
