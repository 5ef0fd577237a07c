"""Downloads that break off, change, lead elsewhere or never end."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data_sets.served_files import Files, served

from agentc.data_sets.download import DownloadError, RefusedError, download

BODY = bytes(range(256)) * 8000


def fetched(files: Files, tmp_path: Path, most: int = 1 << 22, path: str = "/a.zip") -> bytes:
    target = tmp_path / "a.zip"
    download(files.address + path, target, most, lambda there, total: None, pause_s=0.01)
    assert [each.name for each in tmp_path.iterdir()] == ["a.zip"]
    return target.read_bytes()


def test_a_download_that_breaks_off_goes_on(tmp_path: Path) -> None:
    with served(Files({"/a.zip": BODY}, cut=[700_000, 600_000])) as files:
        assert fetched(files, tmp_path) == BODY
        assert files.asked == [None, "bytes=700000-", "bytes=1300000-"]


def test_the_next_command_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    with served(Files({"/a.zip": BODY}, cut=[700_000, 0, 0, 0, 0])) as files:
        with pytest.raises(DownloadError, match="connection ended at 700000 of 2048000"):
            fetched(files, tmp_path)
        assert (tmp_path / "a.zip.part").stat().st_size == 700_000
        assert fetched(files, tmp_path) == BODY
        assert files.asked[-1] == "bytes=700000-"


def test_a_file_that_changed_meanwhile_begins_anew(tmp_path: Path) -> None:
    with served(Files({"/a.zip": BODY}, cut=[700_000, 0, 0, 0, 0])) as files:
        with pytest.raises(DownloadError):
            fetched(files, tmp_path)
        files.content["/a.zip"], files.tag = BODY[::-1], '"2"'
        assert fetched(files, tmp_path) == BODY[::-1]
        # Shorter than what is there already.
        (tmp_path / "a.zip").rename(tmp_path / "a.zip.part")
        files.content["/a.zip"], files.tag = b"short", '"3"'
        assert fetched(files, tmp_path) == b"short"


def test_without_a_tag_nothing_is_stitched_together(tmp_path: Path) -> None:
    with served(Files({"/a.zip": BODY}, tag=None, cut=[700_000])) as files:
        assert fetched(files, tmp_path) == BODY
        assert files.asked == [None, None]


@pytest.mark.parametrize("says_length", [True, False])
def test_more_than_the_bound_is_refused_and_not_kept(tmp_path: Path, says_length: bool) -> None:
    with served(Files({"/a.zip": BODY}, says_length=says_length)) as files:
        with pytest.raises(RefusedError, match="larger than the 1000000 bytes"):
            fetched(files, tmp_path, most=1_000_000)
        assert not (tmp_path / "a.zip.part").exists()
        assert not (tmp_path / "a.zip").exists()


def test_redirects_are_followed_within_the_web_only(tmp_path: Path) -> None:
    with served(Files({"/a.zip": BODY})) as files:
        files.moved = {"/release": "/a.zip", "/local": Path(__file__).as_uri()}
        assert fetched(files, tmp_path, path="/release") == BODY
        with pytest.raises((RefusedError, DownloadError)):
            fetched(files, tmp_path, path="/local")
        assert (tmp_path / "a.zip").read_bytes() == BODY
        with pytest.raises(DownloadError, match="404"):
            fetched(files, tmp_path, path="/gone")


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with served(Files({})) as files:
        pass
    with pytest.raises(DownloadError, match=r"http://127\.0\.0\.1:\d+/a\.zip: .*refused"):
        fetched(files, tmp_path)
