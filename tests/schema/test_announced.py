"""Entry points are read as importlib.metadata reads them, without importing it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from agentc.backend_api.table import announced

TEXT = """\
# of acme
[console_scripts]
acme = acme:main

[ acme.things ]
# b = acme:commented
b.two = acme.inner:THINGS.two [extra]
a.one=acme
"""


def install(folder: Path, name: str, text: str = TEXT, about: str = "METADATA") -> Path:
    info = folder / name
    info.mkdir(parents=True)
    (info / about).write_text(
        "Metadata-Version: 2.1\nName: acme-agents\nVersion: 1.2\n\nName: of the text\n"
    )
    (info / "entry_points.txt").write_text(text)
    return folder


@pytest.mark.parametrize("group", ["agentc.backends", "console_scripts", "pytest11", "no.such"])
def test_what_is_installed_is_found_alike(group: str) -> None:
    theirs = sorted(entry_points(group=group), key=lambda each: (each.name, each.value))
    assert [(each.name, each.value, each.owner) for each in announced(group)] == [
        (each.name, each.value, f"{each.dist.name} {each.dist.version}")
        for each in theirs
        if each.dist is not None
    ]


def test_names_values_and_what_they_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "acme_agents-1.2.dist-info")
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme/__init__.py").write_text("")
    (tmp_path / "acme/inner.py").write_text("class THINGS:\n    two = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    one, two = announced("acme.things")
    assert (one.name, one.value, one.owner) == ("a.one", "acme", "acme-agents 1.2")
    assert (two.name, two.load()) == ("b.two", 2)
    assert one.load() is sys.modules["acme"]


def test_the_first_on_the_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = install(tmp_path / "older", "acme.agents-1.1.dist-info")
    newer = install(
        tmp_path / "newer", "Acme_Agents.egg-info", "[acme.things]\nc = c\n", "PKG-INFO"
    )
    for folder in (older, newer):
        monkeypatch.syspath_prepend(str(folder))
    assert [(each.name, each.owner) for each in announced("acme.things")] == [
        ("c", "acme-agents 1.2")
    ]
    assert [each.name for each in entry_points(group="acme.things")] == ["c"]


def test_what_cannot_be_read_announces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare-1.dist-info").mkdir()
    (install(tmp_path, "odd-1.dist-info") / "odd-1.dist-info/entry_points.txt").write_bytes(b"\xff")
    (install(tmp_path, "no-1.dist-info") / "no-1.dist-info/METADATA").unlink()
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "absent"), str(tmp_path)])
    assert [(each.name, each.owner) for each in announced("acme.things")] == [
        ("a.one", "no-1.dist-info"),
        ("b.two", "no-1.dist-info"),
    ]


def test_a_check_does_not_wait_for_importlib_metadata(repository: Path) -> None:
    code = (
        "import sys; from agentc.cli import main\n"
        f"assert main(['check', {str(repository / 'specs/quickstart.yaml')!r}]) == 0\n"
        "print({'importlib.metadata', 'email', 'socket', 'csv'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
