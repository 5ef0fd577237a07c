"""The second job of a benchmark: metrics of what an evaluator said of each sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

MODULE = "agentc_backends.evaluators.common.job_metrics"
ABOUT = {
    "release": "lm_eval 0.4.13",
    "metric": "acc,none",
    "tasks": {"sums": {"hash": "ab"}, "more": {"hash": "cd"}},
    "success_at": 0.5,
}


def test_each_sample_is_a_task_of_its_own(run_job: Any, tmp_path: Path) -> None:
    rows = [
        {"task": "sums/0", "attempt": 0, "score": 0.25, "success": False},
        {"task": "sums/1", "attempt": 0, "score": 1.0, "success": True},
        {"task": "more/0", "attempt": 0, "score": 1.0, "success": True},
        {"task": "more/1", "attempt": 0, "score": None},
    ]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "evaluator.json").write_text(json.dumps(ABOUT))
    config = {"confidence": 0.9, "range": [0, 1]}
    done = run_job(MODULE, config, inputs={"scores": [tmp_path]})
    assert done.code == 0, done.output
    metrics = json.loads((done.data / "metrics.json").read_text())
    assert metrics["reward"]["mean"] == pytest.approx(0.75)
    assert metrics["success"]["mean"] == pytest.approx(2 / 3)
    assert metrics["reward"]["confidence"] == 0.9
    assert (metrics["n"], metrics["n_error"], metrics["n_tasks"]) == (3, 1, 3)
    assert metrics["tasks"]["more/1"] == {"reward": None, "success": None, "attempts": 0}
    # What decides the meaning of a score, so that a comparison sees where two differ.
    assert metrics["protocol"]["tasks"] == ABOUT["tasks"]
    assert metrics["environment"] == "lm_eval"
