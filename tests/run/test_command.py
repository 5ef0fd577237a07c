"""`agentc run` on real specs, as far as it goes without running a job."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agentc import resources
from agentc.cli import main
from agentc_backends.environments.textcraft import backend as textcraft


@pytest.fixture
def quickstart() -> str:
    return str(resources.data_directory() / "specs" / "quickstart.yaml")


def run(spec: str, store: Path, *words: str) -> int:
    return main(["run", spec, "--store", str(store), "--plain", *words])


def test_dry_run_lists_jobs_and_writes_no_plan(
    quickstart: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The load of this machine is another number each time.
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, 0.0, 0.0))
    assert run(quickstart, tmp_path / "store", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert main(["plan", quickstart, "--store", str(tmp_path / "store")]) == 0
    planned = capsys.readouterr().out
    assert shown == planned, "one estimate for both"
    assert " on an idle machine; about " in shown
    assert "eto.2.dpo" in shown
    assert not (tmp_path / "plans").exists()


def test_until_takes_a_stage_of_the_spec(
    quickstart: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(quickstart, tmp_path / "store", "--dry-run", "--until", "sft") == 0
    assert "eto" not in capsys.readouterr().out
    assert run(quickstart, tmp_path / "store", "--until", "sftt") == 5
    shown = capsys.readouterr().err
    assert "no stage `sftt`" in shown
    assert "sft" in shown.replace("sftt", "")


def test_errors_of_the_spec_are_shown_as_check_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "bad.yaml"
    spec.write_text("agentc: 1\nname: bad\nstagess: {}\n")
    assert run(str(spec), tmp_path / "store") == 1
    assert main(["check", str(spec)]) == 1
    ran, checked = capsys.readouterr().err.split("bad.yaml", 1)
    assert "stagess" in ran + checked
    assert not (tmp_path / "store").exists()


def test_experiment_without_a_server_is_refused_by_name(
    quickstart: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared = replace(textcraft.BACKEND, available=False)
    monkeypatch.setattr(textcraft, "BACKEND", declared)
    assert run(quickstart, tmp_path / "store") == 1
    assert "env.textcraft has no server" in capsys.readouterr().err


def test_store_that_cannot_be_made(
    quickstart: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    assert run(quickstart, tmp_path / "file" / "store") == 4
    assert "no usable store" in capsys.readouterr().err
