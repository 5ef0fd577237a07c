"""Job: `python -m acme_agents.job_pair JOB.json`. Of agentc it imports agentc.program only."""

import sys
from collections import defaultdict
from typing import Any

from agentc.program.job import load_job, read_rows, write_rows


def main() -> int:
    """0 with pairs.jsonl written; 1 with a message when no two attempts differ enough."""
    job = load_job()
    margin, shortest = job.config["margin"], job.config["shortest_first"]
    job.config.assert_all_read()
    tasks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for folder in job.inputs("rollouts"):
        for row in read_rows(folder / "trajectories.jsonl"):
            if row["end"] != "error" and row["reward"] is not None and row["turns"]:
                tasks[row["task_id"]].append(row)
    pairs = []
    for task, attempts in sorted(tasks.items()):
        attempts.sort(key=lambda row: (-row["reward"], row["turns"] if shortest else 0, row["id"]))
        best, worst = attempts[0], attempts[-1]
        if best["reward"] - worst["reward"] > margin:
            pairs.append(pair(task, best, worst))
        job.progress(len(pairs), len(tasks), "tasks")
    job.facts(tasks=len(tasks), pairs=len(pairs))
    if not pairs:
        print(
            "acme.pair: no two attempts at a task differ by more than the margin", file=sys.stderr
        )
        return 1
    write_rows(job.out / "pairs.jsonl", pairs)
    return 0


def pair(task: str, best: dict[str, Any], worst: dict[str, Any]) -> dict[str, Any]:
    """A row of PreferencePairs (docs/design/contracts.md, section 4)."""
    start = best["prompt_length"]
    return {
        "id": f"{task}#{best['attempt']}-{worst['attempt']}",
        "task_id": task,
        "prompt": best["messages"][:start],
        "chosen": best["messages"][start:],
        "rejected": worst["messages"][worst["prompt_length"] :],
        "chosen_reward": best["reward"],
        "rejected_reward": worst["reward"],
        "outcome": "self",
        "chosen_id": best["id"],
        "rejected_id": worst["id"],
    }


if __name__ == "__main__":
    sys.exit(main())
