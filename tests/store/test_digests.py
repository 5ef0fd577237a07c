"""Digests of large files are remembered by path, size and time; a damaged memory costs time."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from agentc.runtime.store import digests


@pytest.fixture
def remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of what is remembered; every file counts as a large one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "_WORTH_REMEMBERING", 0)
    return tmp_path / "cache" / "agentc" / "digests.json"


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"null", b"\xff"])
def test_a_damaged_memory_is_written_again(
    damaged: bytes, remembered: Path, tmp_path: Path
) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"weights")
    expected = digests.content_digest(file)
    remembered.write_bytes(damaged)
    assert digests.content_digest(file) == expected
    (known,) = json.loads(remembered.read_text()).values()
    assert known == hashlib.sha256(b"weights").hexdigest()


def test_what_is_remembered_is_not_read_again(remembered: Path, tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"weights")
    first = digests.content_digest(file)
    (mark,) = json.loads(remembered.read_text())
    remembered.write_text(json.dumps({mark: "0" * 64}))
    assert digests.content_digest(file) != first
    file.write_bytes(b"others!!")
    changed = digests.content_digest(file)
    assert changed not in (None, first)
    assert len(json.loads(remembered.read_text())) == 2


def test_a_memory_that_cannot_be_written_is_no_error(remembered: Path, tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"weights")
    first = digests.content_digest(file)
    remembered.unlink()
    remembered.parent.rmdir()
    remembered.parent.touch()  # a file where the folder would be
    assert digests.content_digest(file) == first
