"""`agentc software`, as typed."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from agentc.cli import main, software
from agentc.runtime.store.layout import StoreLayout
from agentc.software.requirements import Needed


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, layout: StoreLayout) -> None:
    monkeypatch.setenv("AGENTC_STORE", str(layout.root))


def test_an_empty_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["software", "ls"]) == 0
    assert "no software stack is built in" in capsys.readouterr().out
    assert main(["software", "verify", "light"]) == 5
    assert main(["software", "sync"]) == 2
    assert main(["software", "gc"]) == 0


def test_the_former_name_of_the_variable_is_no_silent_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENTC_ENVIRONMENTS", "/shared/software")
    assert main(["software", "ls"]) == 2
    assert "AGENTC_ENVIRONMENTS was renamed to AGENTC_SOFTWARE" in capsys.readouterr().err
    monkeypatch.setenv("AGENTC_SOFTWARE", "/nowhere")
    assert main(["software", "ls"]) == 0


def test_list_verify_and_remove(
    capsys: pytest.CaptureFixture[str], built: Path, tiny: Needed
) -> None:
    assert main(["software", "ls"]) == 0
    assert tiny.sha256[:16] in capsys.readouterr().out
    assert main(["software", "ls", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    listed = json.loads(line)
    assert listed["versions"] == {"tinything": "1.2"}
    assert (listed["state"], listed["path"]) == ("ready", str(built))
    assert main(["software", "verify"]) == 0
    next(built.glob("lib/python3*/site-packages/tinything.py")).write_text("")
    assert main(["software", "verify"]) == 4
    told = capsys.readouterr()
    assert "damaged" in told.out
    assert f"agentc software rm {tiny.sha256[:16]}" in told.err
    assert main(["software", "rm", tiny.sha256[:10]]) == 0
    assert not built.exists()


def test_sync_builds_what_a_spec_needs_once(
    capsys: pytest.CaptureFixture[str], tiny: Needed, tmp_path: Path, scratch_spec: Path
) -> None:
    assert main(["software", "sync", str(scratch_spec)]) == 0
    first = capsys.readouterr().out
    assert "software ready after" in first
    assert main(["software", "sync", str(scratch_spec)]) == 0
    second = capsys.readouterr().out
    assert second.splitlines() == ["tiny: ready"]


def test_an_interpreter_that_is_missing_is_told_before_anything_is_built(
    capsys: pytest.CaptureFixture[str],
    tiny: Needed,
    scratch_spec: Path,
    python_demand: list[str],
    layout: StoreLayout,
) -> None:
    python_demand.append("3.15")
    for command in (["software", "sync"], ["run"]):
        assert main([*command, str(scratch_spec)]) in (1, 3)
        told = capsys.readouterr()
        assert "AGC670" in told.err
        assert "needs Python 3.15" in told.err
        assert "uv python install 3.15" in told.err
    assert main(["plan", str(scratch_spec)]) == 0
    assert "warning[AGC670]" in capsys.readouterr().err
    assert not layout.software.exists()


def test_a_reader_that_has_gone_is_no_trouble_of_the_store(tmp_path: Path) -> None:
    def lists(*given: object) -> int:
        raise BrokenPipeError

    arguments = argparse.Namespace(action=lists, store=str(tmp_path))
    with pytest.raises(BrokenPipeError):
        software.execute(arguments)
