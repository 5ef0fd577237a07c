"""Hashes in locks: uv holds every file to them, and `agentc software hash` finds them."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from wheels import addressed, pinned, write_sdist, write_wheel

from agentc.cli import main
from agentc.runtime.software.job_software import (
    SoftwareError,
    ensure_software,
    read_complete,
)
from agentc.runtime.software.lock_text import lock_digest, read_lock_text
from agentc.runtime.store.layout import StoreLayout

pytestmark = pytest.mark.slow


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of a package index, with a wheel and a source of one version."""
    folder = tmp_path / "index"
    folder.mkdir()
    write_wheel(folder, "tinything", "1.2", {"tinything.py": "VALUE = 42\n"})
    write_sdist(folder, "otherthing", "3.0", "pass")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def locked(index: Path) -> str:
    return pinned("tinything", "1.2", next(index.glob("tinything*"))) + "\n"


def test_what_has_its_hash_is_installed(layout: StoreLayout, index: Path) -> None:
    lock = locked(index) + pinned("otherthing", "3.0", next(index.glob("otherthing*"))) + "\n"
    said: list[str] = []
    directory, known = ensure_software(layout, lock_digest(lock), lock, said.append)
    assert known["versions"] == {"otherthing": "3.0", "tinything": "1.2"}
    assert any(line.startswith("Resolved 2 packages") for line in said)
    tiny = next(directory.glob("lib/python*/site-packages/tinything.py"))
    assert tiny.stat().st_nlink == 1  # no link into a cache that others write to
    assert list(tiny.parent.glob("__pycache__/tinything.*.pyc"))


def test_another_file_of_the_same_version_is_refused(layout: StoreLayout, index: Path) -> None:
    lock = locked(index)
    write_wheel(index, "tinything", "1.2", {"tinything.py": "import os  # an untrusted\n"})
    with pytest.raises(SoftwareError) as caught:
        ensure_software(layout, lock_digest(lock), lock)
    first, second = str(caught.value).splitlines()[:2]
    assert first == "tinything==1.2 is not the file that the lock names by its hash"
    assert "agentc software hash LOCK --file FILE" in second
    assert read_complete(layout.software_stack(lock_digest(lock))) is None


def test_a_local_build_that_the_lock_allows_is_installed(layout: StoreLayout, index: Path) -> None:
    """As `torch 2.13.0+cpu` under the pin `torch==2.13.0`: uv looks for no hash of it by itself."""
    local = write_wheel(index, "tinything", "1.2+here", {"tinything.py": "VALUE = 43\n"})
    lock = pinned("tinything", "1.2", local) + "\n"
    _, known = ensure_software(layout, lock_digest(lock), lock)
    assert known["versions"] == {"tinything": "1.2+here"}


def test_a_local_build_that_the_lock_does_not_name_is_refused(
    layout: StoreLayout, index: Path
) -> None:
    lock = locked(index)
    next(index.glob("tinything*")).unlink()  # else it is taken
    write_wheel(index, "tinything", "1.2+here", {"tinything.py": "import os  # an untrusted\n"})
    with pytest.raises(SoftwareError, match="is not the file that the lock names"):
        ensure_software(layout, lock_digest(lock), lock)
    assert not list(layout.software_stack(lock_digest(lock)).glob("lib/*/site-packages/tiny*"))


def test_an_indexs_file_is_taken_where_a_local_build_is_not_the_locks(
    layout: StoreLayout, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site with only pip configured, by its file: its wheelhouse has builds of its own, its
    index the files whose hashes locks have."""
    wheel = next(index.glob("tinything*"))
    page = index / "simple" / "tinything" / "index.html"
    page.parent.mkdir(parents=True)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    moved = wheel.rename(page.with_name(wheel.name))
    page.write_text(f"<!DOCTYPE html><a href='{moved.name}#sha256={digest}'>{moved.name}</a>")
    lock = pinned("tinything", "1.2", moved) + "\n"
    write_wheel(index, "tinything", "1.2+here", {"tinything.py": "import os  # an untrusted\n"})
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "pip").mkdir(parents=True)
    (tmp_path / "config" / "pip" / "pip.conf").write_text(
        f"[global]\nindex-url = file://{index}/simple\nextra-index-url =\nfind-links = {index}\n"
    )
    _, known = ensure_software(layout, lock_digest(lock), lock)
    assert known["versions"] == {"tinything": "1.2"}


def test_an_altered_file_at_an_address_is_refused(layout: StoreLayout, index: Path) -> None:
    wheel = next(index.glob("tinything*"))
    lock = addressed("tinything", wheel) + "\n"
    write_wheel(index, "tinything", "1.2", {"tinything.py": "import os  # an untrusted\n"})
    with pytest.raises(SoftwareError, match="is not the file that the lock names"):
        ensure_software(layout, lock_digest(lock), lock)


def test_a_lock_without_hashes_builds_nothing(layout: StoreLayout, index: Path) -> None:
    lock = "tinything==1.2\n"
    with pytest.raises(SoftwareError, match="no hash for tinything") as caught:
        ensure_software(layout, lock_digest(lock), lock)
    assert "`agentc software hash LOCK` adds them" in str(caught.value)
    assert not layout.software_stack(lock_digest(lock)).exists()


def test_what_is_let_through_stands_beside_what_is_verified(
    layout: StoreLayout, index: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "source"
    shutil.unpack_archive(next(index.glob("otherthing*")), folder)
    lock = "# agentc: unverified otherthing\n" + locked(index)
    lock += f"otherthing @ file://{folder}/otherthing-3.0\n"
    _, known = ensure_software(layout, lock_digest(lock), lock)
    assert known["versions"] == {"otherthing": "3.0", "tinything": "1.2"}


def test_the_command_adds_hashes_and_nothing_else(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / "own.txt"
    wheel = next(index.glob("tinything*"))
    plain = (
        "# agentc: python >=3.11\n--no-index\n"
        f"--find-links {index}\n# why\ntinything==1.2\n# agentc: then --no-build-isolation\n"
        f"otherthing==3.0 ; python_version >= '3'\nown @ file://{wheel}\n"
    )
    lock.write_text(plain)
    assert main(["software", "hash", "--check", str(lock)]) == 1
    assert "no hash for tinything, otherthing, own" in capsys.readouterr().out
    assert lock.read_text() == plain
    assert main(["software", "hash", str(lock)]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out == f"{lock}: 3 hashes added\n"
    hashed = lock.read_text()
    assert read_lock_text(hashed).unhashed == ()
    assert [line for line in hashed.splitlines() if "--hash" not in line] == [
        line + " \\" if ("thing" in line and "==" in line) or " @ " in line else line
        for line in plain.splitlines()
    ]
    assert main(["software", "hash", "--check", str(lock)]) == 0
    assert main(["software", "hash", str(lock)]) == 0
    assert lock.read_text() == hashed


def test_a_build_of_ones_own_is_added_by_file(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / "own.txt"
    lock.write_text(f"--no-index\n--find-links {index}\ntinything==1.2\n")
    own = tmp_path / "own"
    own.mkdir()
    write_wheel(own, "tinything", "1.2+cpu", {"tinything.py": "VALUE = 43\n"})
    words = ["software", "hash", str(lock), "--file", str(next(own.iterdir()))]
    assert main(words) == 0, capsys.readouterr().err
    assert lock.read_text().count("--hash=") == 2
    write_wheel(own, "stranger", "1.2", {})
    assert main([*words, "--file", str(next(own.glob("stranger*")))]) == 1
    assert "does not pin stranger==1.2" in capsys.readouterr().err


def test_what_can_have_no_hash_is_said_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / "own.txt"
    lock.write_text(f"own @ file://{tmp_path}\n")
    assert main(["software", "hash", str(lock)]) == 1
    assert "# agentc: unverified own" in capsys.readouterr().err
    lock.write_text(f"# agentc: unverified own\nown @ file://{tmp_path}\n")
    assert main(["software", "hash", str(lock)]) == 0
