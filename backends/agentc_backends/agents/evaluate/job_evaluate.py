"""Job: metrics of episodes. `python -m agentc_backends.agents.evaluate.job_evaluate JOB.json`."""

from __future__ import annotations

import sys
from collections import Counter

from agentc.program.artifact_files import METRICS_FILE, TRAJECTORIES_FILE
from agentc.program.job import load_job, read_rows, write_json
from agentc_backends.agents.evaluate.metrics import (
    ExtraMetrics,
    measure,
    report_extra_metrics,
    warn_unsolvable,
)


def main() -> int:
    """Exit 0 with metrics.json written; 1 with a message when nothing can be measured."""
    job = load_job()
    config = job.config
    confidence = config["confidence"]
    about = {
        name: config[name]
        for name in ("success_at", "split", "environment", "reward_range", "protocol")
    }
    asked = config.read_as(ExtraMetrics)
    config.assert_all_read()
    rows = read_rows(job.input("rollouts") / TRAJECTORIES_FILE)
    try:
        metrics = measure(rows, confidence, asked=asked, **about)
    except ValueError as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 1
    unproved = Counter(row["unproved"]["reason"] for row in rows if "unproved" in row)
    if unproved:
        metrics["unproved"] = dict(sorted(unproved.items()))
        job.facts(unproved=metrics["unproved"])
    write_json(job.out / METRICS_FILE, metrics)
    reward, success = metrics["reward"]["mean"], metrics["success"]["mean"]
    job.facts(reward=reward, success=success, n=metrics["n"], n_error=metrics["n_error"])
    job.progress(len(rows), len(rows), "episodes", force=True, reward=reward, success=success)
    print(f"reward {reward:.4f}, success {success:.4f} over {metrics['n']} episodes")
    if about["protocol"].get("critic_sees") == "privileged":
        job.warn(
            "the replies were chosen by a critic that reads the hidden text of each task: the "
            "score is of policy and critic together, and of no agent that has to do without"
        )
    warn_unsolvable(job, rows)
    report_extra_metrics(job, metrics)
    return 0


if __name__ == "__main__":
    sys.exit(main())
