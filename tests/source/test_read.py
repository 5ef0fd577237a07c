"""Reading what a person named: an empty path, circles of links, pipes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from agentc.compilation import compile_spec
from agentc.source.files import UnreadableError, folder_of, is_file, read_named

LONG = Path("u" * 5000)


def reason(path: Path) -> str:
    with pytest.raises(UnreadableError) as caught:
        read_named(path, 100)
    return str(caught.value)


def test_a_path_that_leads_nowhere_is_named_for_what_it_is(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert "empty" in reason(Path())
    assert "circle" in reason(loop)
    assert "directory" in reason(tmp_path)
    assert "too long" in reason(LONG)
    assert "null character" in reason(Path("a\0b"))


def test_folders_and_files_are_asked_for_without_raising(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert folder_of(loop) == tmp_path
    assert not is_file(LONG)
    assert not is_file(loop)


def test_a_pipe_into_which_nobody_writes_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentc.source.files._WRITER_S", 0.05)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "nothing was written" in reason(pipe)


def test_a_pipe_that_is_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentc.source.files._DATA_S", 0.05)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    try:
        assert "silent" in reason(pipe)
    finally:
        os.close(held)


def test_what_is_written_into_a_pipe_is_read_whole(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    text = b"agentc: 1\n" * 20_000

    def write() -> None:
        with os.fdopen(writing, "wb") as stream:
            stream.write(text)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert read_named(Path(f"/dev/fd/{reading}"), 10**6) == text
    finally:
        os.close(reading)
        writer.join()


def test_a_spec_from_a_pipe_is_checked_at_all_of_its_scales(
    tmp_path: Path, repository: Path
) -> None:
    from agentc.backend_api import load_backends

    reading, writing = os.pipe()
    base = repository / "tests" / "diagnostics" / "newcomers" / "base.yaml"
    os.write(writing, base.read_bytes())
    os.close(writing)
    try:
        found = compile_spec(Path(f"/dev/fd/{reading}"), {}, load_backends(), every_scale=True)
    finally:
        os.close(reading)
    assert found.diagnostics == ()


@pytest.mark.parametrize("path", ["", "loop", "u" * 5000])
def test_no_path_of_a_spec_is_a_bug(path: str, tmp_path: Path, capsys: object) -> None:
    from agentc.cli import main

    (tmp_path / "loop").symlink_to("loop")
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert main(["check", path]) == 1
        assert main(["lock", path]) == 1
    finally:
        os.chdir(here)
