"""Archives that would write elsewhere, that grow, or that are broken."""

from __future__ import annotations

import io
import stat
import zipfile
from pathlib import Path

import pytest

from agentc.data_sets.acquire import UnpackError, unpack


def archive(tmp_path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members:
            out.writestr(name, content)
    return path


def special(name: str, kind: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.external_attr = (kind | 0o777) << 16
    return member


def test_files_and_folders_come_out(tmp_path: Path) -> None:
    packed = archive(tmp_path, ("a/", b""), ("a/b/c.txt", b"hello"), ("d", b"x"))
    assert unpack(packed, tmp_path / "out", 100) == 6
    assert (tmp_path / "out/a/b/c.txt").read_bytes() == b"hello"


@pytest.mark.parametrize(
    "name",
    ["../evil", "/evil", "a/../../evil", "C:/evil", "a\\..\\..\\evil", "./evil", "a//evil"],
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(UnpackError, match="would lie elsewhere"):
        unpack(archive(tmp_path, (name, b"x")), tmp_path / "out", 100)
    assert not list(tmp_path.rglob("*evil*"))


def test_links_are_refused(tmp_path: Path) -> None:
    packed = archive(tmp_path, (special("link", stat.S_IFLNK), b"/etc"), ("link/passwd", b"x"))
    with pytest.raises(UnpackError, match="neither a file nor a folder"):
        unpack(packed, tmp_path / "out", 100)


def test_a_bomb_is_stopped_whatever_size_it_claims(tmp_path: Path) -> None:
    packed = archive(tmp_path, ("bomb", bytes(50_000_000)))
    content = packed.read_bytes()
    size = (50_000_000).to_bytes(4, "little")
    assert content.count(size) == 2
    packed.write_bytes(content.replace(size, (5).to_bytes(4, "little")))
    for honest in (content, packed.read_bytes()):
        packed.write_bytes(honest)
        with pytest.raises(UnpackError):
            unpack(packed, tmp_path / "out", 1_000_000)
        assert (tmp_path / "out/bomb").stat().st_size <= 1_000_000
        (tmp_path / "out/bomb").unlink()


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        packed = archive(tmp_path, ("a", b"1"), ("a", b"2"))
    with pytest.raises(UnpackError, match="twice"):
        unpack(packed, tmp_path / "out", 100)


def test_broken_archives_are_refused(tmp_path: Path) -> None:
    packed = archive(tmp_path, ("a", bytes(range(256)) * 40))
    whole = bytearray(packed.read_bytes())
    whole[60] ^= 0xFF
    for content in (b"", b"PK\x03\x04", io.BytesIO(whole).getvalue()):
        packed.write_bytes(content)
        with pytest.raises(UnpackError):
            unpack(packed, tmp_path / "out", 1_000_000)
