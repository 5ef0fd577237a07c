"""Tables of a report for other programs: in its page, in its file, from the command line."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.backends.report.test_report import HOSTILE, Page, collected

from agentc.cli import main
from agentc_backends.results.report.exports import result_tables
from agentc_backends.results.report.page import render_page


def test_each_table_of_the_page_can_be_taken_along(
    example_store: Any, experiment: dict[str, Any]
) -> None:
    collection = collected(example_store, experiment)
    found = result_tables(collection, experiment)
    assert [table.name for table in found] == ["results", "evaluations:textcraft/test", "jobs"]
    page = Page(render_page(collection, {**experiment, "name": HOSTILE}, trajectories=5))
    links = [a for tag, a in page.tags if tag == "a" and "download" in a]
    assert len(links) == 9
    files = {str(a["download"]): str(a["href"]) for a in links}
    [address] = [href for name, href in files.items() if name.endswith("-results.csv")]
    kind, _, content = address.partition(";charset=utf-8;base64,")
    assert kind == "data:text/csv"
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(content).decode())))
    path = example_store.inputs["results"][0] / "comparison.json"
    document = json.loads(path.read_text("utf-8"))
    for row, shown in zip(document["rows"], rows, strict=True):
        assert shown["evaluation"] == row["name"]
        assert float(shown["reward low"]) == row["reward"]["low"]
        assert int(shown["reward n"]) == row["reward"]["n"]
        if row["difference"]:
            assert float(shown["p"]) == row["difference"]["p_value"]
            assert int(shown["worse"]) == row["difference"]["worse"]
    assert not any("/" in name for name in files)


def test_the_command_prints_one_table(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--tables"]) == 0
    listed = capsys.readouterr().out
    assert "evaluations:textcraft/test" in listed
    assert main(["report", "--table", "results", "--format", "latex"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("% Comparison results. 95 % intervals; differences from evaluate_sft")
    assert r"evaluate\_untrained & 0.000" in text
    assert main(["report", "--table", "result"]) == 5
    assert "no table `result` in the report of quickstart; did you mean `results`?" in (
        capsys.readouterr().err
    )


def test_a_report_from_before_says_how_to_get_tables(
    run_folder: Path, example_store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    home = example_store.root / "objects" / "report" / ("8" * 32)
    (home / "data").mkdir(parents=True)
    (home / "data" / "index.html").write_text("<!doctype html>", encoding="utf-8")
    (home / "artifact.json").write_text("{}", encoding="utf-8")
    assert main(["report", "--table", "results"]) == 5
    assert "is older than tables of reports; run it again" in capsys.readouterr().err
