"""Paired comparison: p-values against exact counts, and tasks that do not match."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.results.compare.job_compare import (
    ComparisonError,
    compare,
)

CONFIDENCE = 0.95


def metrics(scores: dict[str, float | None], split: str = "test") -> dict[str, Any]:
    return {
        "n": len(scores),
        "n_error": sum(score is None for score in scores.values()),
        "split": split,
        "environment": "env",
        "tasks": {
            task: {"reward": score, "success": score, "attempts": 0 if score is None else 1}
            for task, score in scores.items()
        },
    }


def test_differences_are_paired_by_task() -> None:
    """Large differences between tasks do not hide a small constant gain."""
    base = {str(n): float(n) for n in range(60)}
    better = {task: score + 0.1 for task, score in base.items()}
    one, other = ("sft", metrics(base)), ("eto", metrics(better))
    table = compare([one, other], one, CONFIDENCE)
    first, second = table["rows"]
    assert first["difference"] is None
    assert second["difference"]["mean"] == pytest.approx(0.1)
    # That all differences are equal is no certainty that others would be.
    assert 0.05 < second["difference"]["low"] < 0.1 < second["difference"]["high"]
    assert second["difference"]["p_value"] < 0.01
    assert second["reward"]["high"] - second["reward"]["low"] > 3
    assert table["baseline"] == "sft"


def test_a_task_lost_to_errors_leaves_the_pair_but_not_the_table() -> None:
    one = ("a", metrics({"x": 0.0, "y": 0.0, "z": None}))
    other = ("b", metrics({"x": 1.0, "y": None, "z": 1.0}))
    row = compare([one, other], one, CONFIDENCE)["rows"][1]
    assert row["difference"]["n"] == 1
    assert row["reward"]["mean"] == 1.0


def test_no_task_with_a_score_on_both_sides_is_a_result_that_says_so(
    run_job: Any, tmp_path: Path
) -> None:
    """The other rows of the table are not lost for it."""
    scores: dict[str, dict[str, float | None]] = {
        "sft": {"x": 0.0, "y": None, "z": None},
        "eto": {"x": None, "y": 1.0, "z": None},
        "rft": {"x": 1.0, "y": 1.0, "z": 1.0},
    }
    folders = []
    for name, given in scores.items():
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        (folders[-1] / "metrics.json").write_text(json.dumps(metrics(given)), encoding="utf-8")
    config = {"names": list(scores), "baseline_name": "sft", "confidence": 0.95}
    done = run_job("agentc_backends.results.compare.job_compare", config, inputs={"of": folders})
    assert done.code == 0, done.output
    table = json.loads((done.data / "comparison.json").read_text("utf-8"))
    _, eto, rft = table["rows"]
    assert eto["reward"]["mean"] == 1.0
    assert eto["difference"] is eto["success_difference"] is None
    assert (rft["difference"]["mean"], rft["difference"]["n"]) == (1.0, 1)
    [note] = table["notes"]
    assert note in done.output
    assert note.startswith("sft and eto have no common task with a score")
    assert "took 2 tasks of sft and 2 of eto, 3 in all" in note


def test_tasks_are_paired_by_name_and_not_by_place() -> None:
    scores = {"x": 0.0, "y": 0.5, "z": 1.0}
    one, other = ("a", metrics(scores)), ("b", metrics(dict(reversed(scores.items()))))
    difference = compare([one, other], one, CONFIDENCE)["rows"][1]["difference"]
    assert (difference["better"], difference["worse"], difference["equal"]) == (0, 0, 3)


def test_other_tasks_are_refused_with_an_example() -> None:
    one, other = ("a", metrics({"x": 0.0, "y": 0.0})), ("b", metrics({"x": 1.0}))
    with pytest.raises(ComparisonError, match=r"1 only in the first.*'y'"):
        compare([one, other], one, CONFIDENCE)


def test_other_splits_are_refused() -> None:
    one, other = ("a", metrics({"x": 0.0})), ("b", metrics({"x": 1.0}, split="train"))
    with pytest.raises(ComparisonError, match=r"'test'.*'train'"):
        compare([one, other], one, CONFIDENCE)


def test_the_job_adds_a_baseline_that_is_not_among_the_rows(run_job: Any, tmp_path: Path) -> None:
    folders = {}
    for name, score in (("base", 0.0), ("sft", 0.5), ("eto", 1.0)):
        folders[name] = tmp_path / name
        folders[name].mkdir()
        text = json.dumps(metrics({str(n): score for n in range(6)}))
        (folders[name] / "metrics.json").write_text(text, encoding="utf-8")
    config = {
        "names": ["sft", "eto"],
        "baseline_name": "base",
        "confidence": 0.95,
    }
    done = run_job(
        "agentc_backends.results.compare.job_compare",
        config,
        inputs={"of": [folders["sft"], folders["eto"]], "baseline": [folders["base"]]},
    )
    assert done.code == 0, done.output
    table = json.loads((done.data / "comparison.json").read_text("utf-8"))
    assert [row["name"] for row in table["rows"]] == ["base", "sft", "eto"]
    assert table["rows"][2]["difference"]["mean"] == 1.0


def test_two_protocols_are_not_paired_in_silence() -> None:
    one, other = metrics({"x": 0.0, "y": 1.0}), metrics({"x": 1.0, "y": 1.0})
    one["protocol"] = {"attempts": 1, "decode": {"temperature": 0.0}, "prompt_seed": 0}
    other["protocol"] = {"attempts": 4, "decode": {"temperature": 1.0}, "prompt_seed": 0}
    rows = [("greedy", one), ("sampled", other)]
    [note] = compare(rows, rows[0], CONFIDENCE)["notes"]
    for part in ("greedy and sampled", "attempts 1 and 4", "decode.temperature 0.0 and 1.0"):
        assert part in note
    assert "prompt_seed" not in note
    other["protocol"] = one["protocol"]
    assert compare(rows, rows[0], CONFIDENCE)["notes"] == []


def test_two_rules_of_reading_actions_are_not_paired_in_silence() -> None:
    one, other = metrics({"x": 0.0, "y": 1.0}), metrics({"x": 1.0, "y": 1.0})
    one["protocol"] = {"action_span": "line", "invalid_message": "a" * 80 + "b"}
    other["protocol"] = {"action_span": "after_last", "invalid_message": "a" * 80 + "c"}
    rows = [("ours", one), ("released", other)]
    [note] = compare(rows, rows[0], CONFIDENCE)["notes"]
    assert "(action_span line and after_last; invalid_message)" in note


def test_a_setting_of_one_side_alone_is_a_difference() -> None:
    """A setting at its default is not listed among an environment's."""
    one, other = metrics({"x": 0.0, "y": 1.0}), metrics({"x": 1.0, "y": 1.0})
    one["protocol"] = {"environment": {"version": 1}}
    other["protocol"] = {"environment": {"version": 1, "max_depth": 2}}
    rows = [("plain", one), ("shallow", other)]
    [note] = compare(rows, rows[0], CONFIDENCE)["notes"]
    assert "(environment.max_depth unset and 2)" in note


def test_several_rows_against_one_baseline_are_corrected() -> None:
    base = metrics({str(n): 0.0 for n in range(40)})
    rows = [("base", base)]
    for gained in (7, 6, 5):
        rows.append((f"r{gained}", metrics({str(n): float(n < gained) for n in range(40)})))
    found = [row["difference"] for row in compare(rows, rows[0], CONFIDENCE)["rows"][1:]]
    assert [d["p_value"] for d in found] == pytest.approx([2 / 2**7, 2 / 2**6, 2 / 2**5], rel=0.3)
    assert found[0]["p_holm"] == pytest.approx(3 * found[0]["p_value"])
    assert found[1]["p_holm"] == pytest.approx(2 * found[1]["p_value"])
    assert [(d["better"], d["worse"], d["equal"]) for d in found] == [
        (7, 0, 33), (6, 0, 34), (5, 0, 35),
    ]  # fmt: skip


def test_the_best_of_several_attempts_has_a_row_of_its_own() -> None:
    """Papers print it beside the policy's own row; it is held against the same baseline."""
    base = metrics({"x": 0.5, "y": 0.5, "z": 0.0})
    sampled = metrics({"x": 0.4, "y": 0.6, "z": 0.2})
    for task, best in (("x", 0.8), ("y", 1.0), ("z", 0.4)):
        sampled["tasks"][task] |= {"best_of(10)": best, "pass_at(10)": 1.0}
    sampled |= {"best_of": [10], "asked": {}}
    rows = compare([("sft", base), ("sampled", sampled)], ("sft", base), CONFIDENCE)["rows"]
    assert [row["name"] for row in rows] == ["sft", "sampled", "sampled, best of 10"]
    assert rows[2]["reward"]["mean"] == pytest.approx(2.2 / 3)
    assert rows[2]["success"]["mean"] == 1.0
    assert rows[2]["difference"]["mean"] == pytest.approx(1.2 / 3)
    assert rows[1]["difference"]["mean"] == pytest.approx(0.2 / 3)


def test_loops_are_compared_where_both_measured_them() -> None:
    one, other, without = (metrics({"x": 0.0, "y": 0.0}) for _ in range(3))
    for document, shares in ((one, (1.0, 1.0)), (other, (0.0, 1.0))):
        document["asked"] = {"loops": {}}
        for task, share in zip("xy", shares, strict=True):
            document["tasks"][task]["loops"] = share
    table = compare([("a", one), ("b", other), ("c", without)], ("a", one), CONFIDENCE)
    first, second, third = table["rows"]
    assert (first["loops"]["mean"], first["loops_difference"]) == (1.0, None)
    assert second["loops_difference"]["mean"] == -0.5
    assert second["loops_difference"]["p_holm"] == second["loops_difference"]["p_value"]
    assert "loops" not in third
