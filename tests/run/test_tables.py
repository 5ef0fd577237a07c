"""The tables that a run ends with: tasks, p-values, how many tasks moved, notes, a sweep's pool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.run.claims import render_verdicts
from agentc.run.outcome import tables
from agentc.runtime.store.layout import StoreLayout
from agentc.text import wrapped


def put(layout: StoreLayout, produces: str, kind: str, file: str, content: Any) -> dict[str, Any]:
    job = {"id": kind, "stage": kind, "kind": kind, "key": "0" * 32, "produces": produces}
    folder = layout.data(f"{kind}/{'0' * 32}")
    folder.mkdir(parents=True)
    (folder / file).write_text(json.dumps(content), encoding="utf-8")
    (folder.parent / "artifact.json").write_text("{}", encoding="utf-8")
    return job


def mean(value: float) -> dict[str, Any]:
    return {"mean": value, "low": value - 0.1, "high": value + 0.1}


def difference(p: float, few: bool) -> dict[str, Any]:
    return {**mean(0.069), "p_value": p, "p_holm": min(1.0, 2 * p), "better": 4, "worse": 0,
            "equal": 47, "few": few}  # fmt: skip


def row(name: str, told: dict[str, Any] | None, n: int = 102) -> dict[str, Any]:
    return {"name": name, "n": n, "n_tasks": 51, "reward": mean(0.5), "success": mean(0.25),
            "difference": told}  # fmt: skip


def test_a_comparison_says_what_its_numbers_are_of(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    rows = [row("sft", None), row("eto", difference(0.125, True)), row("rft", None, n=97)]
    rows[2]["difference"] = difference(0.01, False)
    value = {"baseline": "sft", "rows": rows, "confidence": 0.95, "notes": ["two protocols"]}
    job = put(layout, "Comparison", "compare", "comparison.json", value)
    shown = tables({"jobs": [job]}, layout)
    lines = {line.split()[0]: line for line in shown.splitlines()}
    assert "51 x 2" in lines["eto"]
    assert "51 (97 episodes)" in lines["rft"]
    assert "+0.069 [-0.031, +0.169]" in lines["eto"]
    assert lines["eto"].split("]")[-1].split() == ["0.125", "0.25", "4,", "0,", "47"]
    assert "p (Holm)" in shown
    assert "note: two protocols" in shown
    assert "few tasks moved (eto)" in shown


def test_a_comparison_says_where_large_differences_could_be_unseen(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    open_ = {"furthest": 0.1, "low": -0.02, "high": 0.12, "p_value": 0.21}
    rows = [row("sft", None), row("eto", {**difference(0.01, False), "if_unseen": open_})]
    value = {"baseline": "sft", "rows": rows, "confidence": 0.95}
    shown = tables({"jobs": [put(layout, "Comparison", "c", "comparison.json", value)]}, layout)
    assert "no task moved by more than 0.1 (eto)" in shown
    assert "p is 0.21 and the interval [-0.020, +0.120]" in shown


def test_a_loss_is_shown_as_one(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    lost = {**difference(0.01, False), "mean": -0.2, "low": -0.3, "high": -0.1}
    value = {"baseline": "sft", "rows": [row("sft", None), row("eto", lost)], "confidence": 0.95}
    job = put(layout, "Comparison", "compare", "comparison.json", value)
    assert "-0.200 [-0.300, -0.100]" in tables({"jobs": [job]}, layout).splitlines()[-1]


def test_no_p_value_is_shown_as_zero(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    rows = [row("sft", None), row("eto", difference(0.0, False))]
    value = {"baseline": "sft", "rows": rows, "confidence": 0.95}
    job = put(layout, "Comparison", "compare", "comparison.json", value)
    line = tables({"jobs": [job]}, layout).splitlines()[-1]
    assert line.split("]")[-1].split() == ["<1e-06", "4,", "0,", "47"]


def test_a_sweep_ends_with_its_pooled_table(tmp_path: Path) -> None:
    """Not with one table for each seed."""
    layout = StoreLayout(tmp_path)
    value = {"baseline": "sft@seed=0", "rows": [row("sft@seed=0", None)], "confidence": 0.95}
    one = put(layout, "Comparison", "compare", "comparison.json", value)
    base = {"stage": "sft", "cell": [], "runs": 3, "reward": {**mean(0.5), "n": 51}}
    shown = [
        {**base, "difference": None},
        {**base, "stage": "eto", "difference": difference(0.2, True)},
    ]
    table = {"on": "craft/test", "others": [], "seeds": ["seed"], "baseline": "sft",
             "confidence": 0.95, "rows": shown}  # fmt: skip
    report = put(layout, "Report", "report", "sweep.json", {"tables": [table]})
    text = tables({"jobs": [one, report]}, layout)
    assert "craft/test over the sweep, pooled over seed (tasks x runs)" in text
    assert "51 x 3" in text
    assert "0.2" in text
    assert "sft@seed=0" not in text
    assert "tables of each cell" in text
    assert "variance between runs" not in text


def test_a_sweep_over_two_seeds_says_what_they_tell(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    base = {"cell": [], "reward": {**mean(0.5), "n": 51}, "difference": None}
    shown = [{**base, "stage": "sft", "runs": 1}, {**base, "stage": "eto", "runs": 2}]
    table = {"on": "craft/test", "others": [], "seeds": ["seed"], "baseline": "sft",
             "confidence": 0.95, "rows": shown}  # fmt: skip
    report = put(layout, "Report", "report", "sweep.json", {"tables": [table]})
    text = tables({"jobs": [report]}, layout)
    assert "two runs (eto) are few to estimate the variance between runs" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 130])
@pytest.mark.parametrize("several", [False, True])
def test_tables_fit_the_terminal(width: int, several: bool, tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    rows = [row("evaluate_a_long_name", None), row("eto", difference(0.125, True))]
    rows += [row("rft", difference(0.01, False))] if several else []
    value = {"baseline": "sft", "rows": rows, "confidence": 0.95, "notes": ["two protocols " * 9]}
    document = {"jobs": [put(layout, "Comparison", "compare", "comparison.json", value)]}
    shown = tables(document, layout, width)
    assert max(map(len, shown.splitlines())) <= width, shown
    for number in ("0.500 [0.400, 0.600]", "+0.069 [-0.031, +0.169]", "4, 0, 47"):
        assert number in shown, "no number is cut"
    if width == 40:
        assert "  eto\n    tasks: 51 x 2\n    reward: 0.500 [0.400, 0.600]" in shown
    wide = tables(document, layout)
    assert max(map(len, wide.splitlines())) > 100, "a file has whole lines"


def test_a_success_that_equals_the_reward_is_no_column(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    rows = [{**row("sft", None), "success": mean(0.5)}, row("eto", difference(0.01, False))]
    value = {"baseline": "sft", "rows": rows, "confidence": 0.95}
    job = put(layout, "Comparison", "compare", "comparison.json", value)
    assert "success" in tables({"jobs": [job]}, layout)
    rows[1]["success"] = mean(0.5)
    (tmp_path / "other").mkdir()
    layout = StoreLayout(tmp_path / "other")
    job = put(layout, "Comparison", "compare", "comparison.json", value)
    assert "success" not in tables({"jobs": [job]}, layout)


def test_a_smoke_run_says_first_that_its_numbers_mean_nothing(tmp_path: Path) -> None:
    layout = StoreLayout(tmp_path)
    value = {"baseline": "sft", "rows": [row("sft", None)], "confidence": 0.95}
    job = put(layout, "Comparison", "compare", "comparison.json", value)
    scratch = {"id": "base", "stage": "base", "kind": "model", "key": "1" * 32,
               "produces": "Checkpoint", "backend": "model.scratch"}  # fmt: skip
    hub = {**scratch, "id": "judge", "backend": "model.hf", "config": {"repo": "gpt2"}}
    hub["key"] = "2" * 32
    document = {"experiment": {"scale": "smoke"}, "jobs": [scratch, hub, job]}
    assert tables(document, layout).splitlines()[0] == (
        "smoke: 1 of 3 jobs of the real graph ran; numbers mean nothing"
    ), "no model has been made"
    for made in (scratch, hub):
        folder = layout.data(f"model/{made['key']}")
        folder.mkdir(parents=True)
        (folder.parent / "artifact.json").write_text("{}", encoding="utf-8")
    assert tables(document, layout).splitlines()[0] == (
        "smoke: 3 of 3 jobs of the real graph ran with a random tiny model and gpt2; "
        "numbers mean nothing"
    )
    assert "smoke" not in tables({**document, "experiment": {"scale": "full"}}, layout)


@pytest.mark.parametrize("width", [40, 60, 80, 130])
def test_verdicts_fit_the_terminal(width: int) -> None:
    claim = {
        "name": "rft_helps_on_parcels", "what": "RFT over SFT", "relation": "above", "value": 0.0,
        "observed": {**mean(0.156), "n": 51, "p_value": 0.00338}, "verdict": "reproduced",
        "because": "the interval excludes 0 after Holm's correction over three claims " * 2,
    }  # fmt: skip
    shown = render_verdicts({"claims": [claim]}, colour=False, width=width)
    assert max(map(len, shown.splitlines())) <= width, shown
    assert "0.156 [0.056, 0.256]" in shown
    assert "reproduced" in shown


@pytest.mark.parametrize(("columns", "lines"), [(None, 1), (80, 3), (130, 2)])
def test_an_estimate_is_wrapped_between_words(columns: int | None, lines: int) -> None:
    text = (
        "estimate: about 2.2 h on an idle machine with 4 x a100; about 3.6 h at the current load; "
        "34 min to 10 h with -j 2, 2.6 GPU-hours, 24M tokens, 94 GB of disk"
    )
    found = wrapped(text, columns)
    assert len(found) == lines
    assert " ".join(line.strip() for line in found) == text
    assert wrapped("/a/long/path/that/no/line/holds", 20) == ["/a/long/path/that/no/line/holds"]
