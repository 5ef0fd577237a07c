"""Turns episodes into metrics: scores of tasks, means with intervals, how episodes ended.

An infrastructure error is counted and otherwise left out: it is never a zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeAlias

from agentc.program.job import Job
from agentc_backends.agents.evaluate.episode_scores import (
    LoopRules,
    best_of,
    episode_actions,
    pass_at,
    repeats,
    step_rewards,
)
from agentc_backends.statistics.scores import bounds_of, describe, read_scores

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExtraMetrics:
    """What is measured besides reward and success: the best of so many attempts, loops, and the
    reward by the name that its environment gives it."""

    best_of: tuple[int, ...] = ()
    loops: LoopRules | None = None
    reward_name: str | None = None

    def names(self) -> list[str]:
        """As `metric:` of a claim has them."""
        found = [f"{name}({k})" for k in self.best_of for name in ("best_of", "pass_at")]
        found += ["loops"] if self.loops else []
        return found + ([self.reward_name] if self.reward_name else [])


def measure(
    rows: Iterable[Row],
    confidence: float,
    *,
    success_at: float | None,
    split: str,
    environment: str,
    reward_range: Sequence[float],
    protocol: Mapping[str, Any],
    asked: ExtraMetrics = ExtraMetrics(),
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
    tasks = {task_id: _score(group, success_at, asked) for task_id, group in by_task.items()}
    scored = [task for task in tasks.values() if task["attempts"]]
    turns = sum(r["turns"] for r in good)
    own = turns - sum(r["origin"]["turns"] for r in good if "origin" in r)
    metrics: dict[str, Any] = {
        "name": f"{environment}/{split}",
        "n": len(good),
        "n_error": ends["error"],
        "n_tasks": len(scored),
        "reward_range": list(reward_range),
        "turns": {"mean": turns / len(good)},
        "invalid_share": sum(r["invalid"] for r in good) / own if own else 0.0,
        "ends": dict(sorted(ends.items())),
        "tasks": tasks,
        "split": split,
        "environment": environment,
        "protocol": dict(protocol),
    }
    for score in ("reward", "success"):
        metrics[score] = mean_of(metrics, score, confidence)
    _add_extra_metrics(metrics, good, confidence, asked)
    continued = step_rewards(good)
    if continued:
        metrics["step_rewards"] = continued
    return metrics


def _add_extra_metrics(
    metrics: dict[str, Any], good: Sequence[Row], confidence: float, extra: ExtraMetrics
) -> None:
    if extra.names():
        metrics["asked"] = {name: mean_of(metrics, name, confidence) for name in extra.names()}
    if extra.best_of:
        metrics["best_of"] = list(extra.best_of)
    if extra.loops is not None:
        metrics["repeats"] = _repeats(good, extra.loops)


def unsolvable_tasks(rows: Iterable[Row]) -> dict[str, int]:
    """Tasks with tests that no answer can pass, and how many those are, as environments report
    them (`unusable`)."""
    reports = ((row["task_id"], row.get("report") or {}) for row in rows)
    return {task: told["unusable"] for task, told in reports if told.get("unusable")}


def warn_unsolvable(job: Job, rows: Sequence[Row]) -> None:
    """Count them in the manifest, and say what they cost."""
    impossible = unsolvable_tasks(rows)
    if not impossible:
        return
    tasks = len({row["task_id"] for row in rows})
    job.facts(unsolvable={"tasks": len(impossible), "tests": sum(impossible.values())})
    job.warn(
        f"{len(impossible)} of {tasks} tasks have tests that no answer can pass (their references "
        "fail, or give None, NaN or an object without a value): success cannot exceed "
        f"{1 - len(impossible) / tasks:.1%}. Leave these tasks out, or compare with evaluations "
        "of the same tasks only"
    )


def report_extra_metrics(job: Job, metrics: Mapping[str, Any]) -> None:
    """Say what else was measured, in the manifest and in the log."""
    more = {name: known["mean"] for name, known in metrics.get("asked", {}).items()}
    if more:
        job.facts(measured=more)
    for name, mean in more.items():
        print(f"{name} {'of no task' if mean is None else format(mean, '.4f')}")


def mean_of(metrics: Mapping[str, Any], score: str, confidence: float) -> dict[str, Any]:
    """The mean over the tasks of a metrics.json, with its interval; without limits where no task
    has that score."""
    scores = read_scores([(metrics, None)], score)
    if not scores.tasks:
        none: dict[str, Any] = {"mean": None, "low": None, "high": None}
        return {**none, "confidence": confidence, "n": 0, "method": "none"}
    return describe(scores.estimate(bounds_of(metrics, score)), confidence)


def _repeats(rows: Sequence[Row], rules: LoopRules) -> dict[str, float]:
    """How often, in an episode on average, a block of actions was done again, by its length."""
    counted: Counter[int] = Counter()
    for row in rows:
        counted += repeats(episode_actions(row, rules), rules)
    return {str(length): n / len(rows) for length, n in sorted(counted.items())}


def _is_measured(row: Row) -> bool:
    return row["end"] != "error" and row["reward"] is not None


def _score(group: Iterable[Row], success_at: float | None, asked: ExtraMetrics) -> dict[str, Any]:
    good = [row for row in group if _is_measured(row)]
    if not good:
        return {**_no_score(), **dict.fromkeys(asked.names())}
    rewards = [row["reward"] for row in good]
    successes = [_succeeded(row, success_at) for row in good]
    more: dict[str, float | None] = {}
    for k in asked.best_of:
        more[f"best_of({k})"] = best_of(rewards, k)
        more[f"pass_at({k})"] = pass_at(successes, k)
    if asked.loops is not None:
        rules = asked.loops
        more["loops"] = fmean(bool(repeats(episode_actions(row, rules), rules)) for row in good)
    if asked.reward_name is not None:
        more[asked.reward_name] = fmean(rewards)
    return {
        "reward": fmean(rewards),
        "success": fmean(map(float, successes)),
        "attempts": len(good),
        **more,
    }


def _no_score() -> dict[str, Any]:
    return {"reward": None, "success": None, "attempts": 0}


def _succeeded(row: Row, success_at: float | None) -> bool:
    return bool(row["success"]) if success_at is None else row["reward"] >= success_at
