"""Paired comparison: p-values against exact counts, and tasks that do not match."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.compare_paired.comparison import (
    ComparisonError,
    compare,
    sign_flip_p_value,
)
from agentc_backends.evaluate_agent.intervals import IntervalRules

RULES = IntervalRules("bootstrap", 0.95, 500)


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


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        # All five signs agree: 2 of 32 assignments reach the observed sum.
        ([1.0] * 5, 2 / 32),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.0, 0.0], 2 / 32),
        ([1.0, -1.0], 1.0),
        ([0.0, 0.0], 1.0),
        ([3.0, 2.0, -1.0], 4 / 8),
    ],
)
def test_p_values_are_exact_for_few_differences(differences: list[float], p: float) -> None:
    assert sign_flip_p_value(differences) == pytest.approx(p)


def test_p_values_of_many_differences_find_an_effect_and_none() -> None:
    generator = random.Random(0)
    noise = [generator.gauss(0, 1) for _ in range(100)]
    assert sign_flip_p_value([d + 1 for d in noise]) < 0.001
    assert sign_flip_p_value([1.0, -1.0] * 50) > 0.5


def test_differences_are_paired_by_task() -> None:
    """Large differences between tasks do not hide a small constant gain."""
    base = {str(n): float(n) for n in range(20)}
    better = {task: score + 0.1 for task, score in base.items()}
    one, other = ("sft", metrics(base)), ("eto", metrics(better))
    table = compare([one, other], one, RULES)
    first, second = table["rows"]
    assert first["difference"] is None
    assert second["difference"]["mean"] == pytest.approx(0.1)
    assert second["difference"]["low"] > 0.09
    assert second["difference"]["p_value"] < 0.01
    assert second["reward"]["high"] - second["reward"]["low"] > 3
    assert table["baseline"] == "sft"


def test_a_task_lost_to_errors_leaves_the_pair_but_not_the_table() -> None:
    one = ("a", metrics({"x": 0.0, "y": 0.0, "z": None}))
    other = ("b", metrics({"x": 1.0, "y": None, "z": 1.0}))
    row = compare([one, other], one, RULES)["rows"][1]
    assert row["difference"]["n"] == 1
    assert row["reward"]["mean"] == 1.0


def test_other_tasks_are_refused_with_an_example() -> None:
    one, other = ("a", metrics({"x": 0.0, "y": 0.0})), ("b", metrics({"x": 1.0}))
    with pytest.raises(ComparisonError, match=r"1 only in the first.*'y'"):
        compare([one, other], one, RULES)


def test_other_splits_are_refused() -> None:
    one, other = ("a", metrics({"x": 0.0})), ("b", metrics({"x": 1.0}, split="train"))
    with pytest.raises(ComparisonError, match=r"'test'.*'train'"):
        compare([one, other], one, RULES)


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
        "interval": "bootstrap",
        "resamples": 200,
    }
    done = run_job(
        "agentc_backends.compare_paired.job_compare",
        config,
        inputs={"of": [folders["sft"], folders["eto"]], "baseline": [folders["base"]]},
    )
    assert done.code == 0, done.output
    table = json.loads((done.data / "comparison.json").read_text("utf-8"))
    assert [row["name"] for row in table["rows"]] == ["base", "sft", "eto"]
    assert table["rows"][2]["difference"]["mean"] == 1.0
