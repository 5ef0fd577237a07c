"""`agentc report`: the path of a finished run's report, and a partial one before that."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

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


def test_several_runs_are_one_page(
    run_folder: Path, example_store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unfinished ones too; each links to its own report."""
    assert main(["report", "quickstart", "quickstart"]) == 5
    assert "these names mean the same run: quickstart, quickstart" in capsys.readouterr().err
    other = run_folder.with_name("quickstart@smoke")
    shutil.copytree(run_folder, other)
    plan = json.loads((other / "last-plan.json").read_text("utf-8"))
    plan["experiment"] = {"scale": "smoke"}
    (other / "last-plan.json").write_text(json.dumps(plan), encoding="utf-8")
    assert main(["report", "quickstart", "quickstart@smoke"]) == 0
    page = Path(capsys.readouterr().out.strip())
    assert page.parent == run_folder
    text = page.read_text("utf-8")
    assert "None: the same settings in every stage." in text
    assert "Evaluations on textcraft/test" in text
    links = re.findall(r'href="([^"]*)"', text)
    assert len(links) == 2
    assert all((page.parent / unquote(link)).is_file() for link in links)
    for option in ("--tables", "--claims"):
        assert main(["report", "quickstart", "quickstart@smoke", option]) == 2
        assert "those of one run: name one" in capsys.readouterr().err
