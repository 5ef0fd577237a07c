"""Revisions in one table: how far actors went before they saw their mistake, and how often they saw
one, paired by task; as it is written, printed and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.backends.report.conftest import EXPERIMENT, build
from tests.backends.report.test_report import rendered
from tests.run.test_tables import put

from agentc.run.outcome import tables
from agentc.runtime.contracts.artifacts import check_artifact
from agentc.runtime.store.layout import StoreLayout
from agentc_backends.results.compare.comparison import compare_revisions
from agentc_backends.statistics.measurements import revision_metrics

FIRST = {"a": [8, 6, None], "b": [4, 4, 2], "c": [None, None], "d": [10, None]}
LAST = {"a": [3, 3], "b": [2, None, 1, 1], "d": [4], "e": [1]}
"""Numbers of the first wrong action in each row, by task; None where none was found."""


def rows(lengths: dict[str, list[int | None]]) -> list[dict[str, Any]]:
    made = [
        {"id": f"{task}/{n}", "task_id": task, "part": "revision", "flagged": flag,
         "bad_actions": flag or 12}
        for task, found in lengths.items()
        for n, flag in enumerate(found)
    ]  # fmt: skip
    made.append({"id": "d", "task_id": "z", "part": "direct", "flagged": None, "bad_actions": 30})
    return [*made, {"id": "g", "task_id": "z", "part": "good"}]


JUDGE = {"judge": {"parser": "strict", "temperature": 0.0, "instruction": None}}


def compared(of: Path, run_job: Any, *judges: dict[str, Any]) -> Any:
    """Two revisions compared; the rules that they were judged by, where they tell them."""
    folders = []
    for name, lengths in (("r.1.revise", FIRST), ("r.2.revise", LAST)):
        folders.append(of / name)
        folders[-1].mkdir()
        text = "".join(json.dumps(row) + "\n" for row in rows(lengths))
        (folders[-1] / "rows.jsonl").write_text(text, encoding="utf-8")
    for folder, judge in zip(folders, judges, strict=False):
        (folder / "judged_by.json").write_text(json.dumps(judge), encoding="utf-8")
    config = {
        "names": ["r.1.revise", "r.2.revise"], "baseline_name": "r.1.revise", "confidence": 0.95,
    }  # fmt: skip
    done = run_job("agentc_backends.results.compare.job_compare", config, inputs={"of": folders})
    assert done.code == 0, done.output
    return done


def test_only_revised_trajectories_say_something() -> None:
    metrics = revision_metrics(rows(FIRST))
    assert metrics["tasks"] == {
        "a": {"revision_length": 7.0, "revised": pytest.approx(2 / 3), "attempts": 3},
        "b": {"revision_length": pytest.approx(10 / 3), "revised": 1.0, "attempts": 3},
        "c": {"revision_length": None, "revised": 0.0, "attempts": 2},
        "d": {"revision_length": 10.0, "revised": 0.5, "attempts": 2},
    }
    assert (metrics["n"], metrics["length_range"]) == (10, [1, 12])


def test_revisions_are_paired_by_task(run_job: Any, tmp_path: Path) -> None:
    done = compared(tmp_path, run_job)
    check_artifact("Comparison", done.data, {}, {}, done.facts)
    table = json.loads((done.data / "comparison.json").read_text("utf-8"))
    first, second = table["rows"]
    assert table["scores"] == ["revision_length", "revised"]
    assert first["difference"] is first["revised_difference"] is None
    assert (first["n"], first["n_tasks"], second["n"], second["n_tasks"]) == (10, 4, 8, 4)
    # Means over tasks, not over rows.
    assert first["revision_length"]["mean"] == pytest.approx((7 + 10 / 3 + 10) / 3)
    assert first["revised"]["mean"] == pytest.approx((2 / 3 + 1 + 0 + 1 / 2) / 4)
    # Tasks a, b and d have a length on both sides; c had none to find, e was not searched.
    difference = second["difference"]
    assert (difference["n"], difference["worse"]) == (3, 3)
    assert difference["mean"] == pytest.approx(((3 - 7) + (4 / 3 - 10 / 3) + (4 - 10)) / 3)
    assert difference["p_holm"] == difference["p_value"]
    shares = second["revised_difference"]
    assert shares["mean"] == pytest.approx(((1 - 2 / 3) + (3 / 4 - 1) + (1 - 1 / 2)) / 3)
    assert table["notes"] == []
    assert "r.2.revise: revision_length 2.3333" in done.output


def test_nothing_in_common_is_said() -> None:
    one, other = (revision_metrics(rows({task: [3]})) for task in "xy")
    table = compare_revisions([("one", one), ("other", other)], ("one", one), 0.95)
    assert table["rows"][1]["difference"] is None
    assert table["notes"] == [
        "one and other have no task in common with revisions of both, so their difference is not "
        "estimated"
    ]


@pytest.mark.parametrize(
    "judges", [(), (JUDGE,), (JUDGE, JUDGE)], ids=["of before", "one of before", "alike"]
)
def test_one_judge_is_not_mentioned(
    run_job: Any, tmp_path: Path, judges: tuple[dict[str, Any], ...]
) -> None:
    done = compared(tmp_path, run_job, *judges)
    assert json.loads((done.data / "comparison.json").read_text("utf-8"))["notes"] == []


def test_two_judges_are_told(run_job: Any, tmp_path: Path) -> None:
    other = {"judge": {**JUDGE["judge"], "parser": "published", "temperature": 1.0}}
    done = compared(tmp_path, run_job, JUDGE, other)
    (note,) = json.loads((done.data / "comparison.json").read_text("utf-8"))["notes"]
    assert note == (
        "r.1.revise and r.2.revise were judged under two protocols (judge.parser strict and "
        "published; judge.temperature 0.0 and 1.0): their difference is that of protocol and "
        "judge together"
    )
    assert note in done.output


def test_the_terminal_names_what_was_compared(run_job: Any, tmp_path: Path) -> None:
    done = compared(tmp_path, run_job)
    value = json.loads((done.data / "comparison.json").read_text("utf-8"))
    layout = StoreLayout(tmp_path / "store")
    job = put(layout, "Comparison", "lengths", "comparison.json", value)
    shown = tables({"jobs": [job]}, layout).splitlines()
    assert shown[1].split("  ")[-1].strip() == "up, down, equal"
    assert "revision length" in shown[1]
    assert "revised" in shown[1]
    assert "reward" not in shown[1]
    last = next(line for line in shown if line.lstrip().startswith("r.2.revise"))
    assert "2.333 [" in last
    assert last.rstrip().endswith("0, 3, 0")


def test_the_report_shows_them_without_a_grade(run_job: Any, tmp_path: Path) -> None:
    done = compared(tmp_path, run_job)
    store = build(tmp_path / "store")
    text = (done.data / "comparison.json").read_text("utf-8")
    store.add("lengths", "compare", "Comparison", {"comparison.json": text}, inputs={}, wall_s=0.1)
    shown = " ".join(rendered(store, EXPERIMENT).text.split())
    assert "mean revision length" in shown
    assert "0 up, 3 down, 0 equal" in shown
    # The table of evaluations is what it was.
    assert "mean reward" in shown
    assert "better" in shown
