"""Turns episodes into metrics: scores of tasks, means with intervals, how episodes ended.

An infrastructure error is counted and otherwise left out: it is never a zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, TypeAlias

from agentc_backends.inference.described import described
from agentc_backends.inference.scores import bounds_of, read_scores

Row: TypeAlias = Mapping[str, Any]


def measure(
    rows: Iterable[Row],
    confidence: float,
    *,
    success_at: float | None,
    split: str,
    environment: str,
    reward_range: Sequence[float],
    protocol: Mapping[str, Any],
) -> dict[str, Any]:
    """metrics.json of a set of episodes.

    `success_at` None takes the environment's own verdict in each row. `protocol` says how the
    episodes were played, for those who compare them with others. A task all of whose episodes
    ended in errors stands in `tasks` with null scores, so that sets of tasks stay comparable.
    Raises ValueError when there is no episode to measure.
    """
    by_task: dict[str, list[Row]] = defaultdict(list)
    ends: Counter[str] = Counter()
    for row in rows:
        ends[row["end"]] += 1
        by_task[row["task_id"]].append(row)
    good = [r for group in by_task.values() for r in group if _is_measured(r)]
    if not good:
        raise ValueError(
            f"none of {ends.total()} episodes has a reward"
            + (f"; {ends['error']} ended in infrastructure errors" if ends["error"] else "")
        )
    tasks = {task_id: _score(group, success_at) for task_id, group in by_task.items()}
    scored = [task for task in tasks.values() if task["attempts"]]
    turns = sum(r["turns"] for r in good)
    metrics: dict[str, Any] = {
        "name": f"{environment}/{split}",
        "n": len(good),
        "n_error": ends["error"],
        "n_tasks": len(scored),
        "reward_range": list(reward_range),
        "turns": {"mean": turns / len(good)},
        "invalid_share": sum(r["invalid"] for r in good) / turns if turns else 0.0,
        "ends": dict(sorted(ends.items())),
        "tasks": tasks,
        "split": split,
        "environment": environment,
        "protocol": dict(protocol),
    }
    for score in ("reward", "success"):
        metrics[score] = mean_of(metrics, score, confidence)
    return metrics


def mean_of(metrics: Mapping[str, Any], score: str, confidence: float) -> dict[str, Any]:
    """The mean over the tasks of a metrics.json, with its interval."""
    bounds = bounds_of(metrics, score)
    return described(read_scores([(metrics, None)], score).estimate(bounds), confidence)


def _is_measured(row: Row) -> bool:
    return row["end"] != "error" and row["reward"] is not None


def _score(group: Iterable[Row], success_at: float | None) -> dict[str, Any]:
    good = [row for row in group if _is_measured(row)]
    if not good:
        return {"reward": None, "success": None, "attempts": 0}
    return {
        "reward": fmean(row["reward"] for row in good),
        "success": fmean(float(_succeeded(row, success_at)) for row in good),
        "attempts": len(good),
    }


def _succeeded(row: Row, success_at: float | None) -> bool:
    return bool(row["success"]) if success_at is None else row["reward"] >= success_at
