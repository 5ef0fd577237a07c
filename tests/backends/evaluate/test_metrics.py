"""Metrics of episodes: errors kept apart, attempts averaged within tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.agents.evaluate.episode_scores import LoopRules
from agentc_backends.agents.evaluate.metrics import ExtraMetrics, measure


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


def test_a_tasks_score_is_the_mean_of_its_attempts() -> None:
    metrics = measured([row("a", 1.0), row("a", 0.0), row("a", 0.5, success=False), row("a", 0.1)])
    assert metrics["tasks"]["a"] == {"reward": pytest.approx(0.4), "success": 0.5, "attempts": 4}


def test_success_at_replaces_the_environments_verdict() -> None:
    rows = [row("a", 0.7, success=False), row("b", 0.4, success=False)]
    assert measured(rows)["success"]["mean"] == 0.0
    assert measured(rows, success_at=0.5)["success"]["mean"] == 0.5


def test_turns_and_invalid_replies() -> None:
    metrics = measured([row("a", 1.0), row("b", 0.0, turns=2, invalid=2)])
    assert metrics["turns"]["mean"] == 3
    assert metrics["invalid_share"] == 0.5


def test_what_is_asked_for_is_measured_of_each_task() -> None:
    rows = [row("a", r, id=f"a#{n}") for n, r in enumerate((1.0, 0.0, 0.0))]
    rows += [row("b", r, id=f"b#{n}") for n, r in enumerate((0.0, 0.5, None))]
    metrics = measure(
        rows, 0.95, success_at=1.0, split="test", environment="env", reward_range=(0.0, 1.0),
        protocol={}, asked=ExtraMetrics(best_of=(2, 3)),
    )  # fmt: skip
    a, b = metrics["tasks"]["a"], metrics["tasks"]["b"]
    assert (a["best_of(2)"], a["pass_at(2)"]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    # One attempt was lost: the best of two is known, that of three is not.
    assert (b["best_of(2)"], b["best_of(3)"], b["pass_at(3)"]) == (0.5, None, None)
    assert metrics["asked"]["best_of(3)"]["n"] == 1
    assert metrics["asked"]["best_of(2)"]["mean"] == pytest.approx((2 / 3 + 0.5) / 2)
    known = metrics["asked"]["best_of(2)"]
    assert 0 <= known["low"] < known["mean"] < known["high"] <= 1


def test_a_measure_that_no_task_has_is_null_and_no_crash() -> None:
    metrics = measure(
        [row("a", 1.0)], 0.95, success_at=None, split="test", environment="env",
        reward_range=(0.0, 1.0), protocol={}, asked=ExtraMetrics(best_of=(2,)),
    )  # fmt: skip
    assert metrics["asked"]["best_of(2)"]["mean"] is None
    assert metrics["reward"]["mean"] == 1.0


def test_loops_are_a_share_of_episodes() -> None:
    def acted(task: str, *actions: str) -> dict[str, Any]:
        said = [{"role": "assistant", "content": f"Action: {action}"} for action in actions]
        asked = [{"role": "user", "content": "seen"}] * len(said)
        turns = [turn for pair in zip(asked, said, strict=True) for turn in pair]
        return row(task, 0.0, messages=turns, prompt_length=1)

    rules = LoopRules(times=2, longest=5, action_span="line", action_space="optional",
                      no_action="invalid", reply_format="react")  # fmt: skip
    metrics = measure(
        [acted("a", "look", "look"), acted("a", "look", "go"), acted("b", "x", "y", "x", "y")],
        0.95, success_at=None, split="test", environment="env", reward_range=(0.0, 1.0),
        protocol={}, asked=ExtraMetrics(loops=rules),
    )  # fmt: skip
    assert metrics["tasks"]["a"]["loops"] == 0.5
    assert metrics["asked"]["loops"]["mean"] == 0.75
    assert metrics["repeats"] == {"1": pytest.approx(1 / 3), "2": pytest.approx(1 / 3)}


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
        "agentc_backends.agents.evaluate.job_evaluate", config, inputs={"rollouts": [folder]}
    )
    assert done.code == 0, done.output
    metrics = json.loads((done.data / "metrics.json").read_text("utf-8"))
    assert metrics["reward"]["mean"] == 0.5
    assert metrics["reward"]["low"] < 0.5 < metrics["reward"]["high"]
    assert metrics["reward"]["confidence"] == 0.9


def test_tasks_that_nobody_can_solve_are_counted_and_said(run_job: Any, tmp_path: Path) -> None:
    rows = [row("a", 1.0), row("a", 0.0, report={"tests": 2}), row("b", 0.0), row("c", 0.5)]
    for each, unusable in zip(rows[1:], (0, 2, 1), strict=True):
        each["report"] = {"tests": 2, "unusable": unusable}
    (tmp_path / "trajectories.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    config = {
        "success_at": None, "confidence": 0.9, "split": "test", "environment": "env",
        "reward_range": [0.0, 1.0], "protocol": {"attempts": 1},
    }  # fmt: skip
    done = run_job(
        "agentc_backends.agents.evaluate.job_evaluate", config, inputs={"rollouts": [tmp_path]}
    )
    assert done.code == 0, done.output
    assert done.facts["unsolvable"] == {"tasks": 2, "tests": 3}
    [warning] = done.facts["warnings"]
    assert "2 of 3 tasks" in warning
    assert "cannot exceed 33.3%" in warning


def test_reward_of_a_step_is_the_mean_of_what_went_on_behind_it() -> None:
    def row(source: str, turns: int, reward: float | None, **more: Any) -> dict[str, Any]:
        origin = {"input": 0, "id": source, "turns": turns}
        ends = {"end": "success" if reward else "failure", "success": bool(reward)}
        base = {"task_id": "t", "turns": turns + 2, "invalid": 1, "reward": reward, **ends}
        return {**base, "origin": origin, **more}

    def measured(rows: list[dict[str, Any]]) -> dict[str, Any]:
        about: dict[str, Any] = {"split": "s", "environment": "e", "reward_range": [0, 1]}
        return measure(rows, 0.95, success_at=None, protocol={}, **about)

    rows = [
        row("a#0", 1, 1.0),
        row("a#0", 1, 0.5),
        row("a#0", 2, 0.0),
        row("b#0", 1, 0.25),
        row("b#0", 2, None, end="error"),
    ]
    metrics = measured(rows)
    assert metrics["step_rewards"] == {
        "0/a#0": {"1": {"reward": 0.75, "attempts": 2}, "2": {"reward": 0.0, "attempts": 1}},
        "0/b#0": {"1": {"reward": 0.25, "attempts": 1}},
    }
    # Of the 13 turns 5 were the prefixes'.
    assert metrics["invalid_share"] == 4 / 8
    without = [{n: v for n, v in each.items() if n != "origin"} for each in rows]
    assert "step_rewards" not in measured(without)
