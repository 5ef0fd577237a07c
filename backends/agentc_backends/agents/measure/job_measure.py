"""Job: metrics of episodes. `python -m agentc_backends.agents.measure.job_measure JOB.json`."""

from __future__ import annotations

import sys
from typing import Any

from agentc.program.job import Job, load_job, read_rows, write_json
from agentc_backends.agents.evaluate.metrics import Asked, measure, tell_asked
from agentc_backends.agents.measure.answers import answer_of


def main() -> int:
    """Exit 0 with metrics.json written; 1 with a message when nothing can be measured."""
    job = load_job()
    config = job.config
    success_at, confidence = config["success_at"], config["confidence"]
    about = {name: config[name] for name in ("environment", "reward_range")}
    asked = Asked.of(config)
    episodes, protocol = _episodes(job)
    config.assert_all_read()
    split = next((row["split"] for row in episodes if "split" in row), "")
    try:
        metrics = measure(
            episodes,
            confidence,
            success_at=success_at,
            split=split,
            protocol=protocol,
            asked=asked,
            **about,
        )
    except ValueError as error:
        print(f"measure: {error}", file=sys.stderr)
        return 1
    write_json(job.out / "metrics.json", metrics)
    reward, success = metrics["reward"]["mean"], metrics["success"]["mean"]
    job.facts(reward=reward, success=success, n=metrics["n"], n_error=metrics["n_error"])
    job.progress(len(episodes), len(episodes), "episodes", force=True, reward=reward)
    print(f"reward {reward:.4f}, success {success:.4f} over {metrics['n']} episodes")
    tell_asked(job, metrics)
    return 0


def _episodes(job: Job) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows to measure, and what is known of how they came about."""
    config, folder = job.config, job.input("of")
    answer, succeeds = config["answer"], config["success"]
    trees = folder / "trees.jsonl"
    if not trees.exists():
        return read_rows(folder / "trajectories.jsonl"), {}
    rows = read_rows(trees)
    samples = sum(row["budget"]["samples"] for row in rows)
    job.facts(trees=len(rows), samples=samples)
    found = [{**answer_of(row, answer, succeeds), "split": row["split"]} for row in rows]
    return found, {"answer": answer, "samples_per_task": samples / len(rows)}


if __name__ == "__main__":
    sys.exit(main())
