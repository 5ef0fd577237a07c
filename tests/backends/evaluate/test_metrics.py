"""Metrics of episodes: errors kept apart, attempts averaged within tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.evaluate_agent.metrics import measure


def row(task: str, reward: float | None, **changes: Any) -> dict[str, Any]:
    end = "error" if reward is None else "success" if reward >= 1 else "failure"
    values = {
        "id": f"{task}#0",
        "task_id": task,
        "reward": reward,
        "success": bool(reward),
        "end": end,
        "turns": 4,
        "invalid": 1,
    }
    return {**values, **changes}


def measured(rows: list[dict[str, Any]], success_at: float | None = None) -> dict[str, Any]:
    return measure(
        rows, 0.95, success_at=success_at, split="test", environment="env",
        reward_range=(0.0, 1.0), protocol={"attempts": 1},
    )  # fmt: skip


def test_errors_are_counted_and_never_zeros() -> None:
    metrics = measured([row("a", 1.0), row("b", None), row("c", 0.0)])
    assert metrics["reward"]["mean"] == 0.5
    assert (metrics["n"], metrics["n_error"], metrics["n_tasks"]) == (2, 1, 2)
    assert metrics["ends"] == {"error": 1, "failure": 1, "success": 1}
    assert metrics["tasks"]["b"] == {"reward": None, "success": None, "attempts": 0}


def test_a_task_counts_once_however_often_it_was_tried() -> None:
    metrics = measured([row("a", 1.0), *(row("b", 0.0) for _ in range(9))])
    assert metrics["reward"]["mean"] == 0.5
    assert metrics["tasks"]["b"]["attempts"] == 9
    assert metrics["n"] == 10


def test_success_at_replaces_the_environments_verdict() -> None:
    rows = [row("a", 0.7, success=False), row("b", 0.4, success=False)]
    assert measured(rows)["success"]["mean"] == 0.0
    assert measured(rows, success_at=0.5)["success"]["mean"] == 0.5


def test_turns_and_invalid_replies() -> None:
    metrics = measured([row("a", 1.0), row("b", 0.0, turns=2, invalid=2)])
    assert metrics["turns"]["mean"] == 3
    assert metrics["invalid_share"] == 0.5


def test_nothing_to_measure_is_an_error_that_says_why() -> None:
    with pytest.raises(ValueError, match="2 ended in infrastructure errors"):
        measured([row("a", None), row("b", None)])


def test_the_job_writes_metrics(run_job: Any, tmp_path: Path) -> None:
    folder = tmp_path / "rollouts"
    folder.mkdir()
    lines = [json.dumps(row(str(n), n % 2)) for n in range(10)]
    (folder / "trajectories.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = {
        "success_at": None,
        "confidence": 0.9,
        "split": "test",
        "environment": "env",
        "reward_range": [0.0, 1.0],
        "protocol": {"attempts": 1},
    }
    done = run_job(
        "agentc_backends.evaluate_agent.job_evaluate", config, inputs={"rollouts": [folder]}
    )
    assert done.code == 0, done.output
    metrics = json.loads((done.data / "metrics.json").read_text("utf-8"))
    assert metrics["reward"]["mean"] == 0.5
    assert metrics["reward"]["low"] < 0.5 < metrics["reward"]["high"]
    assert metrics["reward"]["confidence"] == 0.9
