"""Job of `benchmark`: metrics.json of the scores of samples.

`python -m agentc_backends.evaluators.common.job_metrics JOB.json`
"""

from __future__ import annotations

import sys

from agentc.program.artifact_files import METRICS_FILE, SCORES_FILE
from agentc.program.job import load_job, read_json, read_rows, write_json
from agentc_backends.evaluators.common.evaluator import ABOUT
from agentc_backends.scripts.stage.job_metrics import metrics_of


def main() -> int:
    """Exit 0 with metrics.json written; that a sample has a score, the scores' contract says."""
    job = load_job()
    config = job.config
    confidence, bounds = config["confidence"], config["range"]
    config.assert_all_read()
    folder = job.input("scores")
    about = read_json(folder / ABOUT)
    tasks = ", ".join(about["tasks"])
    metrics = metrics_of(read_rows(folder / SCORES_FILE), tasks, confidence, bounds)
    metrics |= {
        "environment": about["release"].partition(" ")[0],
        "split": tasks,
        "protocol": {
            "measured_by": about["release"],
            "metric": about["metric"],
            "success_at": about["success_at"],
            "tasks": about["tasks"],
        },
    }
    write_json(job.out / METRICS_FILE, metrics)
    reward, success = metrics["reward"]["mean"], metrics["success"]["mean"]
    job.facts(reward=reward, success=success, n=metrics["n"], n_error=metrics["n_error"])
    print(f"{about['metric']} {reward:.4f} over {metrics['n_tasks']} samples of {tasks}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
