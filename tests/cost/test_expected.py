"""What a run's record expected of its jobs, beside what they took."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import BackendTable
from agentc.cli import main
from agentc.cost import estimate_plan
from agentc.cost.outcomes import outcome_lines, outcomes, read_expected
from agentc.plan.work import find_work, object_of
from agentc.run.record import Record
from agentc.run.report_page import report_to_show
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder

SFT = {"rows": 184, "tokens": 29810, "steps": 36, "trained_tokens": 7940}
PAGE = "<html><body><main>\n<section>results</section>\n</main></body></html>"
Document = dict[str, Any]


@pytest.fixture
def begun(
    planned: Callable[..., Document], table: BackendTable, tmp_path: Path
) -> tuple[Document, StoreLayout]:
    """A run that recorded what it expected, and did nothing yet."""
    document = planned("quickstart")
    layout = StoreLayout(tmp_path / "store")
    record_start(document, layout, table)
    return document, layout


def record_start(document: Document, layout: StoreLayout, table: BackendTable) -> None:
    work = find_work(document, layout)
    folder = RunFolder.of(layout, "quickstart")
    record = Record(folder, work, 1.0)
    record.open(json.dumps(document), layout.root)
    record.expect(estimate_plan(document, layout, table=table, states=work.states))


def test_everything_that_has_to_run_is_expected(begun: tuple[Document, StoreLayout]) -> None:
    document, layout = begun
    found = read_expected(RunFolder.of(layout, "quickstart"))
    assert set(found) == {f"{job['kind']}/{job['key']}" for job in document["jobs"]}


def test_what_was_expected_first_outlives_a_second_run(
    begun: tuple[Document, StoreLayout], finish: Callable[..., Path], table: BackendTable
) -> None:
    document, layout = begun
    [sft] = [f"sft/{job['key']}" for job in document["jobs"] if job["id"] == "sft"]
    before = read_expected(RunFolder.of(layout, "quickstart"))
    finish(document, "sft", wall_s=500.0, facts=SFT)
    record_start(document, layout, table)
    after = read_expected(RunFolder.of(layout, "quickstart"))
    assert after[sft] == before[sft]
    assert after != before  # what is left was estimated anew, from what was learned


def test_stages_are_held_against_their_estimate(
    begun: tuple[Document, StoreLayout], finish: Callable[..., Path]
) -> None:
    document, layout = begun
    finish(document, "sft", wall_s=5000.0, facts=SFT)
    expected = read_expected(RunFolder.of(layout, "quickstart"))
    [one] = outcomes(document["jobs"], layout, expected)
    assert (one.stage, one.jobs, one.actual, one.within) == ("sft", 1, 5000.0, False)
    assert one.actual_tokens == pytest.approx(3 * 29810)
    text, slower = "\n".join(outcome_lines([one])), f"{5000 / one.expected[1]:.0f} times slower"
    assert "83 min" in text
    assert slower in text
    assert "89k actual" in text
    assert "based on" in text
    for width in (40, 60, 80):
        narrow = "\n".join(outcome_lines([one], width))
        assert max(map(len, narrow.splitlines())) <= width, narrow
        assert slower in narrow


def test_status_shows_both(
    begun: tuple[Document, StoreLayout],
    finish: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    document, layout = begun
    finish(document, "sft", wall_s=12.0, facts=SFT)
    assert main(["status", "--store", str(layout.root)]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  sft ")]
    assert "done in 12 s (expected: " in line
    assert main(["status", "--cost", "--store", str(layout.root)]) == 0
    assert "sft" in capsys.readouterr().out
    assert main(["status", "--json", "--store", str(layout.root)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(len(line["expected_s"]) == 3 for line in lines)


def test_the_report_gets_a_section_and_the_object_stays(
    begun: tuple[Document, StoreLayout], finish: Callable[..., Path], tmp_path: Path
) -> None:
    document, layout = begun
    page = tmp_path / "page" / "index.html"
    page.parent.mkdir()
    page.write_text(PAGE, encoding="utf-8")
    work = find_work(document, layout)
    assert report_to_show(page, work) == page  # nothing has finished
    finish(document, "sft", wall_s=12.0, facts=SFT)
    shown = report_to_show(page, find_work(document, layout))
    text = shown.read_text(encoding="utf-8")
    assert text.index("results") < text.index("Expected and actual time") < text.index("</main>")
    assert "<th>sft</th>" in text
    assert page.read_text(encoding="utf-8") == PAGE
    (page.parent / "more.js").write_text("")
    assert report_to_show(page, find_work(document, layout)) == page


def test_runs_shows_no_report_of_another_plan(
    begun: tuple[Document, StoreLayout],
    finish: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`report.html` stays while the plan changes; what it was made from says of which it is."""
    document, layout = begun
    folder = RunFolder.of(layout, "quickstart")

    def shown() -> str:
        assert main(["status", "--all-runs", "--json", "--store", str(layout.root)]) == 0
        return str(json.loads(capsys.readouterr().out)["report"])

    finish(document, "sft", wall_s=12.0, facts=SFT)
    [report] = [job for job in document["jobs"] if job["produces"] == "Report"]
    page = layout.data(object_of(report)) / "index.html"
    finish(document, report["id"], wall_s=1.0)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(PAGE, encoding="utf-8")
    work = find_work(document, layout)
    assert report_to_show(page, work) == folder.report
    assert shown() == str(folder.report)
    folder.report_source.write_text('{"object": "report/another"}')
    assert shown() == str(page)
    folder.report_source.unlink()
    assert shown() == str(page)
    part = layout.root / "part" / "index.html"
    part.parent.mkdir()
    part.write_text(PAGE, encoding="utf-8")
    assert report_to_show(part, work) == folder.report
    assert shown() == str(page), "a part of a report is not the report"


@pytest.mark.parametrize("text", ["", "[]", '{"sft/k": 3}', '{"sft/k": {"seconds": ["a", 1, 2]}}'])
def test_a_damaged_record_says_nothing(tmp_path: Path, text: str) -> None:
    folder = RunFolder.of(StoreLayout(tmp_path), "demo")
    folder.path.mkdir(parents=True)
    folder.estimate.write_text(text, encoding="utf-8")
    assert read_expected(folder) == {}
