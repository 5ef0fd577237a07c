"""Job: metrics of episodes. `python -m agentc_backends.agents.measure.job_measure JOB.json`.

The answer of a search tree is one of its paths; the names are those of the survey of Monte Carlo
tree search by Browne et al. (2012), section 3.1.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from agentc.program.artifact_files import METRICS_FILE, TRAJECTORIES_FILE, TREES_FILE
from agentc.program.job import Job, load_job, read_rows, write_json
from agentc_backends.agents.evaluate.metrics import ExtraMetrics, measure, report_extra_metrics


def main() -> int:
    """Exit 0 with metrics.json written; 1 with a message when nothing can be measured."""
    job = load_job()
    config = job.config
    success_at, confidence = config["success_at"], config["confidence"]
    about = {name: config[name] for name in ("environment", "reward_range")}
    asked = config.read_as(ExtraMetrics)
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
    write_json(job.out / METRICS_FILE, metrics)
    reward, success = metrics["reward"]["mean"], metrics["success"]["mean"]
    job.facts(reward=reward, success=success, n=metrics["n"], n_error=metrics["n_error"])
    job.progress(len(episodes), len(episodes), "episodes", force=True, reward=reward)
    print(f"reward {reward:.4f}, success {success:.4f} over {metrics['n']} episodes")
    report_extra_metrics(job, metrics)
    return 0


def _episodes(job: Job) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows to measure, and what is known of how they came about."""
    config, folder = job.config, job.input("of")
    answer, succeeds = config["answer"], config["success"]
    trees = folder / TREES_FILE
    if not trees.exists():
        return read_rows(folder / TRAJECTORIES_FILE), {}
    rows = read_rows(trees)
    samples = sum(row["budget"]["samples"] for row in rows)
    job.facts(trees=len(rows), samples=samples)
    found = [{**search_answer(row, answer, succeeds), "split": row["split"]} for row in rows]
    return found, {"answer": answer, "samples_per_task": samples / len(rows)}


Row: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = Literal["robust_child", "max_child", "best_leaf"]


def search_answer(tree: Row, answer: Answer, success_at: float) -> dict[str, Any]:
    """What `measure` of `evaluate/metrics.py` reads of an episode, for the chosen path of a tree.
    One that broke off is an infrastructure error."""
    if tree["end"] == "error":
        return {"task_id": tree["task_id"], "end": "error", "reward": None}
    path = answer_path(tree["nodes"], answer)
    reward = path[-1]["reward"]
    success = reward >= success_at
    turns = [*tree.get("prefix", ()), *path[1:]]
    return {
        "task_id": tree["task_id"],
        "end": _end(path[-1], success),
        "reward": reward,
        "success": success,
        "turns": len(turns),
        "actions": [turn["action"] or turn["reply"].strip() for turn in turns],
        # Replies without an action, which the environment never saw.
        "invalid": sum(not node["action"] for node in path[1:]),
        **({"origin": tree["origin"]} if "origin" in tree else {}),
    }


def answer_path(nodes: Sequence[Row], answer: Answer) -> list[Row]:
    """The nodes from the root to the answer. Of equals the one that was kept first is taken."""
    children: dict[int | None, list[Row]] = defaultdict(list)
    for node in nodes:
        children[node["parent"]].append(node)
    if answer == "best_leaf":
        ends = [node for node in nodes if node["terminal"] and not children[node["id"]]]
        # A search without a descent has made nothing but its root.
        leaf = max(ends or nodes[:1], key=lambda node: node["reward"])
        return list(_up(nodes, leaf))[::-1]
    path = [nodes[0]]
    while below := [node for node in children[path[-1]["id"]] if node["visits"]]:
        path.append(max(below, key=_robust if answer == "robust_child" else _mean))
    return path


def _robust(node: Row) -> tuple[float, float]:
    return node["visits"], _mean(node)


def _mean(node: Row) -> float:
    return float(node["value"] / node["visits"])


def _up(nodes: Sequence[Row], node: Row) -> Iterator[Row]:
    yield node
    while node["parent"] is not None:
        node = nodes[node["parent"]]
        yield node


def _end(leaf: Row, success: bool) -> str:
    """As episodes end: the environment's own end is a success or none."""
    match leaf["end"]:
        case "done" | "negative":
            return "success" if success else "failure"
        case "overflow":
            return "overflow"
        case _:
            return "limit"


if __name__ == "__main__":
    sys.exit(main())
