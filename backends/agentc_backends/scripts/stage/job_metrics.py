"""Job of script.run: metrics.json of the scores that a script gave tasks.

`python -m agentc_backends.scripts.stage.job_metrics JOB.json`
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from agentc.program.artifact_files import METRICS_FILE, SCORES_FILE
from agentc.program.job import load_job, read_rows, write_json
from agentc_backends.agents.evaluate.metrics import mean_of


def main() -> int:
    """Exit 0 with metrics.json written; 1 where no task has a score."""
    job = load_job()
    config = job.config
    name, confidence, bounds = config["name"], config["confidence"], config["range"]
    config.assert_all_read()
    rows = read_rows(job.input("scores") / SCORES_FILE)
    metrics = metrics_of(rows, name, confidence, bounds)
    if not metrics["n"]:
        print(f"{name}: none of {metrics['n_error']} rows has a score", file=sys.stderr)
        return 1
    write_json(job.out / METRICS_FILE, metrics)
    reward, success = metrics["reward"]["mean"], metrics["success"]["mean"]
    job.facts(reward=reward, success=success, n=metrics["n"], n_error=metrics["n_error"])
    print(f"{name} {reward:.4f} over {metrics['n']} scores of {metrics['n_tasks']} tasks")
    return 0


def metrics_of(
    rows: Iterable[Mapping[str, Any]], name: str, confidence: float, bounds: Sequence[float]
) -> dict[str, Any]:
    """metrics.json of rows `{task, score, success?}`; a row without a score is counted and left
    out, as an episode is that ended in an infrastructure error. The score stands as `reward`, for
    all that reads metrics knows it by that name."""
    by_task: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    errors = 0
    for row in rows:
        good = by_task[row["task"]]
        if row["score"] is None:
            errors += 1
        else:
            good.append(row)
    tasks = {task: _task(good) for task, good in by_task.items()}
    metrics: dict[str, Any] = {
        "name": name,
        "split": "",
        "environment": name,
        "n": sum(map(len, by_task.values())),
        "n_error": errors,
        "n_tasks": sum(map(bool, by_task.values())),
        "reward_range": list(bounds),
        "tasks": tasks,
        "protocol": {"measured_by": name},
    }
    for score in ("reward", "success"):
        metrics[score] = mean_of(metrics, score, confidence)
    return metrics


def _task(rows: list[Mapping[str, Any]]) -> dict[str, Any]:
    told = [float(row["success"]) for row in rows if row.get("success") is not None]
    return {
        "reward": fmean(row["score"] for row in rows) if rows else None,
        "success": fmean(told) if told else None,
        "attempts": len(rows),
    }


if __name__ == "__main__":
    sys.exit(main())
