"""The answer of a search tree: one of its paths, and the episode that it stands for.

The names are those of the survey of Monte Carlo tree search by Browne et al. (2012), section 3.1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

Row: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = Literal["robust_child", "max_child", "best_leaf"]


def answer_of(tree: Row, answer: Answer, success_at: float) -> dict[str, Any]:
    """What `measure` of `evaluate/metrics.py` reads of an episode, for the chosen path of a tree.
    One that broke off is an infrastructure error."""
    if tree["end"] == "error":
        return {"task_id": tree["task_id"], "end": "error", "reward": None}
    path = chosen_path(tree["nodes"], answer)
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


def chosen_path(nodes: Sequence[Row], answer: Answer) -> list[Row]:
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
