"""Staging directories are emptied although a file server keeps some of their files for a while."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from agentc.runtime.store.staging import remove_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "staged" / "data").mkdir(parents=True)
    (tmp_path / "staged" / "data" / "rows.jsonl").write_text("{}\n")
    return tmp_path / "staged"


def refuse(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Removals fail as a file server lets them, of which there is none here."""

    def rmtree(path: str) -> NoReturn:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(shutil, "rmtree", rmtree)


@pytest.mark.parametrize("number", [errno.ENOTEMPTY, errno.EBUSY, errno.ESTALE])
def test_what_cannot_be_removed_yet_is_renamed(
    tree: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A file that somebody has open stays under another name on NFS; what staging needs is that
    its own name is free."""
    refuse(monkeypatch, number)
    remove_tree(tree)
    assert not tree.exists()
    (aside,) = tree.parent.iterdir()
    assert aside.name.startswith(".gone-")
    assert (aside / "data" / "rows.jsonl").is_file()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.EROFS])
def test_other_refusals_are_reported(
    tree: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    refuse(monkeypatch, number)
    with pytest.raises(OSError, match="staged") as raised:
        remove_tree(tree)
    assert raised.value.errno == number
    assert (tree / "data" / "rows.jsonl").is_file()
