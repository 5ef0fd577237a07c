"""`agentc trust`: whose code runs without a question, and what takes that back."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentc.cli import main
from agentc.source.trust import (
    TrustError,
    distrust_reason,
    revoke,
    trust,
    trust_file,
    trusted_folders,
)

NOBODY = 65534


@pytest.fixture(autouse=True)
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty configuration of this user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An experiment with a file and a package of code."""
    place = tmp_path / "experiment"
    package = place / "code" / "acme"
    package.mkdir(parents=True)
    for file in (place / "world.py", package / "__init__.py", package / "job.py"):
        file.touch(0o644)
    for each in (place, place / "code", package):
        each.chmod(0o755)
    return place


def test_a_folder_is_trusted_with_all_in_it_until_that_is_revoked(folder: Path) -> None:
    places = [folder / "world.py", folder / "code" / "acme"]
    assert [distrust_reason(place) for place in places] == ["", ""]
    link = folder.with_name("link")
    link.symlink_to(folder)
    entry = trust(link)
    assert (entry.folder, entry.owner) == (str(folder), os.geteuid())
    trust(folder)
    assert [each.folder for each in trusted_folders()] == [str(folder)]
    assert [distrust_reason(place) for place in places] == [None, None]
    assert distrust_reason(folder.with_name("experiment2") / "world.py") == ""
    assert trust_file().stat().st_mode & 0o777 == 0o600
    assert revoke(link) is not None
    assert revoke(folder) is None
    assert [distrust_reason(place) for place in places] == ["", ""]


@pytest.mark.parametrize("mode", [0o002, 0o020])
@pytest.mark.parametrize("part", ["", "world.py"])
def test_what_others_may_write_to_does_not_run(folder: Path, part: str, mode: int) -> None:
    trust(folder)
    open_part = folder / part
    if mode == 0o020 and os.geteuid() == 0:
        os.chown(open_part, -1, NOBODY)  # a group of root's own is no other user
    elif mode == 0o020:
        pytest.skip("a group of several users takes root to give away")
    open_part.chmod(open_part.stat().st_mode | mode)
    reason = distrust_reason(folder / "world.py")
    assert reason is not None
    assert f"{open_part} is in a trusted folder, but" in reason
    assert f"chmod {'o' if mode == 0o002 else 'g'}-w {open_part}" in reason
    assert distrust_reason(folder / "code" / "acme") == (None if part else reason)
    if not part:
        with pytest.raises(TrustError, match="cannot be trusted"):
            trust(folder)


def test_each_file_of_a_package_counts(folder: Path) -> None:
    trust(folder)
    (folder / "code/acme/job.py").chmod(0o666)
    assert "acme/job.py is in a trusted folder" in str(distrust_reason(folder / "code" / "acme"))
    assert distrust_reason(folder / "world.py") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_trust_is_in_an_owner_too(folder: Path) -> None:
    trust(folder)
    os.chown(folder / "world.py", NOBODY, -1)
    assert "belongs to nobody" in str(distrust_reason(folder / "world.py"))
    os.chown(folder, NOBODY, -1)
    reason = str(distrust_reason(folder / "code" / "acme"))
    assert "was trusted when it belonged to root, and belongs to nobody now" in reason
    assert trust(folder).owner == NOBODY  # knowingly
    assert distrust_reason(folder / "world.py") is None


def test_a_list_that_others_could_write_is_not_read(folder: Path, config: Path) -> None:
    trust(folder)
    trust_file().chmod(0o644)
    with pytest.raises(TrustError, match=r"with mode 0600 \(it belongs to .*, with mode 0644\)"):
        distrust_reason(folder / "world.py")
    trust_file().chmod(0o600)
    if os.geteuid() == 0:
        os.chown(trust_file(), NOBODY, -1)
        with pytest.raises(TrustError, match="it belongs to nobody"):
            trust(folder)


@pytest.mark.parametrize("text", ["{", "3", '[{"folder": "/"}]', "[1]"])
def test_a_list_that_is_none_is_refused(text: str, folder: Path) -> None:
    trust(folder)
    trust_file().write_text(text)
    with pytest.raises(TrustError, match="is no list of folders"):
        trusted_folders()


def test_the_command(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert main(["trust", "--list"]) == 0
    assert "no folder is trusted" in capsys.readouterr().out
    assert main(["trust"]) == 0
    assert f"specs may run the code in {folder}" in capsys.readouterr().out
    assert main(["trust", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == str(folder)
    assert main(["trust", "--revoke", str(folder)]) == 0
    assert main(["trust", "--revoke"]) == 5
    monkeypatch.setenv("HOME", str(folder))
    for wrong in ("/", str(folder), "absent", "world.py"):
        assert main(["trust", wrong]) == 2
    assert "trust the experiment's own folder" in capsys.readouterr().err
