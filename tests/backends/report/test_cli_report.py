"""`agentc report`: the path of a finished run's report, and a partial one before that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentc.cli import main


def test_an_unfinished_run_gives_a_partial_report(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report"]) == 0
    printed = capsys.readouterr()
    page = Path(printed.out.strip())
    assert "1 of" in page.read_text("utf-8")
    assert "later" in page.read_text("utf-8")
    assert "is not finished" in printed.err
    assert "evaluate_sft" in page.read_text("utf-8")


def test_a_finished_run_gives_the_path_of_its_report(
    run_folder: Path, example_store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    home = example_store.root / "objects" / "report" / ("8" * 32)
    (home / "data").mkdir(parents=True)
    (home / "data" / "index.html").write_text("<!doctype html>", encoding="utf-8")
    (home / "artifact.json").write_text("{}", encoding="utf-8")
    assert main(["report", "quickstart"]) == 0
    assert capsys.readouterr().out.strip() == str(home / "data" / "index.html")


def test_an_unknown_name_is_answered_with_the_nearest(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "quikstart"]) == 5
    assert "did you mean `quickstart`" in capsys.readouterr().err


def test_a_store_without_runs_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTC_STORE", raising=False)
    assert main(["report", "--store", str(tmp_path / "none")]) == 5
    assert "nothing was run" in capsys.readouterr().err


def test_a_broken_report_program_is_reported_with_what_it_said(
    run_folder: Path, example_store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    [data] = example_store.inputs["evaluate_sft"]
    (data / "metrics.json").unlink()
    assert main(["report"]) == 3
    assert "metrics.json" in capsys.readouterr().err
