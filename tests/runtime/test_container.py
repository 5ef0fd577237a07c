"""Environments that are container images: command lines as apptainer documents them, identity by
digest, and a clear word where there is no engine. No engine runs here: a script stands for it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tiny_plan import PROGRAMS, TinyPlan

from agentc.runtime.software.container import ContainerError, exec_command, find_engine
from agentc.runtime.software.job_software import (
    SoftwareError,
    ensure_software,
    read_complete,
)
from agentc.runtime.software.lock_text import LockTextError, read_lock_text
from agentc.runtime.store.layout import StoreLayout

DIGEST = "sha256:" + "ab" * 32
PULLED = f"# agentc: container docker://ghcr.io/acme/trainer@{DIGEST}\n"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreLayout:
    monkeypatch.delenv("AGENTC_SOFTWARE", raising=False)
    return StoreLayout(tmp_path / "store")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in, first on PATH; returns its log of command lines."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "apptainer"
    script.write_text(f"#!{sys.executable}\n" + (PROGRAMS / "apptainer").read_text())
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path / "engine.jsonl"


def commands(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_an_image_of_a_registry_is_pulled_once_by_its_digest(
    layout: StoreLayout, engine: Path
) -> None:
    directory, known = ensure_software(layout, sha256(PULLED), PULLED)
    image = str(directory / "image.sif")
    source = f"docker://ghcr.io/acme/trainer@{DIGEST}"
    assert commands(engine)[0] == ["pull", "--force", image, source]
    assert commands(engine)[1][0] == "exec"
    assert commands(engine)[1][-4:-1] == [image, "python3", "-c"]
    assert known["container"] == source
    assert known["python"] == sys.version.split()[0]
    assert known["versions"]["pip"]  # all that its own Python sees
    before = len(commands(engine))
    ensure_software(layout, sha256(PULLED), PULLED)
    assert len(commands(engine)) == before
    (directory / "image.sif").unlink()
    assert read_complete(directory) is None


def test_an_image_file_is_found_by_name_and_checked_by_digest(
    layout: StoreLayout, engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = tmp_path / "images"
    images.mkdir()
    (images / "trainer.sif").write_text("an image")
    monkeypatch.setenv("AGENTC_IMAGES", f"{tmp_path / 'nowhere'}:{images}")
    lock = f"# agentc: container trainer.sif sha256:{sha256('an image')}\n"
    directory, _ = ensure_software(layout, sha256(lock), lock)
    assert (directory / "image.sif").resolve() == images / "trainer.sif"
    other = f"# agentc: container trainer.sif sha256:{sha256('another')}\n"
    with pytest.raises(SoftwareError, match="another image than the one"):
        ensure_software(layout, sha256(other), other)
    monkeypatch.delenv("AGENTC_IMAGES")
    missing = f"# agentc: container other.sif sha256:{sha256('x')}\n"
    with pytest.raises(SoftwareError, match="export AGENTC_IMAGES="):
        ensure_software(layout, sha256(missing), missing)


def test_a_job_runs_in_the_image_with_its_server(plan: TinyPlan, engine: Path) -> None:
    """The store and the code are bound, the program and the server start in the image, and what
    they imported is told."""
    plan.software("image", PULLED)
    plan.job("made", "checkpoint.py", kind="model", produces="Checkpoint", software="image")
    lease = plan.lease(software="image")
    plan.job("rows", inputs={"model": ["made"]}, leases=[lease], software="image")
    for name in ("made", "rows"):
        done = plan.run(name)
        assert done.returncode == 0, done.stderr
    started = [words for words in commands(engine) if words[0] == "exec" and "-c" not in words]
    assert len(started) == 3
    for words in started:
        binds = [words[i + 1] for i, word in enumerate(words) if word == "--bind"]
        assert str(plan.store.resolve()) in binds
        assert any(bind.endswith("/agentc") for bind in binds)
        assert words[words.index("python3") - 1].endswith("/image.sif")
    told = plan.manifest("rows")["software"]
    assert told["python"] == sys.version.split()[0]
    assert "imported" in told


def test_an_image_that_cannot_be_had_is_explained(layout: StoreLayout, engine: Path) -> None:
    lock = f"# agentc: container docker://ghcr.io/acme/missing@{DIGEST}\n"
    with pytest.raises(SoftwareError, match="manifest unknown"):
        ensure_software(layout, sha256(lock), lock)


def test_without_an_engine_the_message_says_how_to_get_one(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if shutil.which("apptainer") or shutil.which("singularity"):
        monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SoftwareError) as caught:
        ensure_software(layout, sha256(PULLED), PULLED)
    assert "neither apptainer nor singularity" in str(caught.value)
    assert "module load apptainer" in str(caught.value)
    with pytest.raises(ContainerError):
        find_engine()


def test_folders_are_bound_once_and_strange_ones_refused(engine: Path) -> None:
    words = exec_command(Path("/i/image.sif"), ["/data/store", "/data", "/database", "/data/x"])
    assert [w for i, w in enumerate(words) if words[i - 1] == "--bind"] == ["/data", "/database"]
    with pytest.raises(ContainerError, match="cannot be bound: /a:b"):
        exec_command(Path("/i/image.sif"), ["/a:b"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("docker://ghcr.io/acme/trainer:latest", "a bare tag may mean another image tomorrow"),
        (f"/shared/trainer.sif {DIGEST}", "expected docker://"),
        ("trainer.sif", "expected docker://"),
        (f"trainer.sif {DIGEST}\nnumpy==1.0", "nothing may be beside it"),
        (f"trainer.sif {DIGEST}\n# agentc: python 3.10", "nothing may be beside it"),
    ],
)
def test_images_without_an_identity_are_refused(line: str, said: str) -> None:
    with pytest.raises(LockTextError, match=said):
        read_lock_text(f"# agentc: container {line}\n")
