"""Post-conditions of search trees: the shape of each tree, and its counts against each other.

A row is one tree (docs/design/contracts.md, section 4). Only terminal leaves are backed up, so the
visits and values of a node follow from the leaves below it. Findings are those of `row_contracts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentc.program.artifact_files import TREES_FILE
from agentc.runtime.contracts.row_contracts import (
    abbreviated,
    is_finite,
    is_integer,
    message_findings,
    reward_findings,
    rows_of,
)

if TYPE_CHECKING:
    from agentc.runtime.contracts.artifacts import Artifact
    from agentc.runtime.contracts.row_contracts import Finding

TREE_ENDS = ("searched", "error")
LEAF_ENDS = ("done", "depth", "negative", "overflow")
"""Why a node without children is terminal; one with children is a `dead_end`."""
BUDGET = ("model_calls", "samples", "environment_calls", "steps")
_TEXTS = ("reply", "action", "observation")


def check_trees(artifact: Artifact) -> Iterator[Finding]:
    """One tree for each task, or for each prefix that one begins behind, each consistent in itself;
    broken ones (`end: error`) are not read by anybody and only need to say so."""
    name = TREES_FILE
    for number, row in rows_of(artifact, name):
        if isinstance(row, str):
            yield (name, number, None, row)
            continue
        for field, message in tree_findings(row, artifact.contract):
            yield (name, number, field, message)


def tree_findings(row: Mapping[str, Any], contract: Mapping[str, Any]) -> Iterator[Any]:
    if "origin" not in row and row.get("id") != row.get("task_id"):
        yield (
            "id",
            f"expected the task's, {row.get('task_id')}; found {abbreviated(row.get('id'))}",
        )
    end = row.get("end")
    if end not in TREE_ENDS:
        yield "end", f"{abbreviated(end)} is not one of {', '.join(TREE_ENDS)}"
    wrong = list(message_findings(row.get("messages")))
    for message in wrong:
        yield "messages", message
    if not wrong and row["messages"][-1]["role"] != "user":
        yield (
            "messages",
            f"the opening ends with the {row['messages'][-1]['role']}'s message",
        )
    budget = row.get("budget")
    if not isinstance(budget, dict):
        yield "budget", f"expected an object, found {abbreviated(budget)}"
    else:
        for name in BUDGET:
            if not is_integer(budget.get(name)) or budget[name] < 0:
                yield "budget", f"{name} is {abbreviated(budget.get(name))}, no count"
    if end == "error":
        if not isinstance(row.get("error"), str):
            yield "error", f"expected what went wrong, found {abbreviated(row.get('error'))}"
        return
    yield from _prefix_findings(row)
    nodes = row.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        yield "nodes", f"expected a list with a root, found {abbreviated(nodes)}"
        return
    broken = list(_node_findings(nodes, contract))
    for message in broken or _count_findings(nodes):
        yield "nodes", message


def _prefix_findings(row: Mapping[str, Any]) -> Iterator[Any]:
    """The turns before the root are as many as the origin says, each with its texts."""
    if "origin" not in row:
        if "prefix" in row:
            yield "prefix", "turns before the root, and no `origin` that they are from"
        return
    origin, given = row["origin"], row.get("prefix")
    turns = origin.get("turns") if isinstance(origin, dict) else None
    if not is_integer(turns) or not isinstance(given, list) or len(given) != turns:
        yield "prefix", f"expected as many turns as `origin` says, found {abbreviated(given)}"
        return
    for number, turn in enumerate(given, start=1):
        if not isinstance(turn, dict) or not all(isinstance(turn.get(n), str) for n in _TEXTS):
            yield "prefix", f"turn {number}: expected reply, action and observation"
        elif not is_finite(turn.get("reward")):
            yield "prefix", f"turn {number}: reward is {abbreviated(turn.get('reward'))}"


def _node_findings(nodes: list[Any], contract: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with single nodes and their places; without that, counts can be added up."""
    for index, node in enumerate(nodes):
        if not isinstance(node, dict):
            yield f"expected an object, found {abbreviated(node)}"
            return
        if node.get("id") != index:
            yield f"expected node {index}, found the id {abbreviated(node.get('id'))}"
            return
        for message in _place_findings(nodes, index, node):
            yield f"node {index}: {message}"
        for name in _TEXTS:
            if not isinstance(node.get(name), str):
                yield f"node {index}: {name} is {abbreviated(node.get(name))}, no text"
            elif index == 0 and node[name]:
                yield f"node 0: the root has no {name}"
        if not isinstance(node.get("terminal"), bool):
            yield f"node {index}: terminal is {abbreviated(node.get('terminal'))}"
        if not is_integer(node.get("visits")) or not is_finite(node.get("value")):
            yield f"node {index}: visits and value are numbers"
        for message in reward_findings(node.get("reward"), contract, nullable=False):
            yield f"node {index}: reward: {message}"


def _place_findings(nodes: list[Any], index: int, node: Mapping[str, Any]) -> Iterator[str]:
    parent = node.get("parent")
    if index == 0:
        if parent is not None or node.get("depth") != 0:
            yield "the root has no parent and depth 0"
        return
    if not is_integer(parent) or not 0 <= parent < index:  # type: ignore[operator]
        yield f"parent is {abbreviated(parent)}; parents come before their children"
        return
    depth = nodes[parent].get("depth")  # type: ignore[index]
    if not is_integer(depth) or node.get("depth") != depth + 1:
        found = abbreviated(node.get("depth"))
        yield f"depth is {found} below a node of depth {abbreviated(depth)}"


def _count_findings(nodes: list[Mapping[str, Any]]) -> Iterator[str]:
    """Visits, values and ends against what lies below; children come after their parents."""
    children: dict[int, list[int]] = {}
    for node in nodes[1:]:
        children.setdefault(node["parent"], []).append(node["id"])
    totals: dict[int, tuple[int, float]] = {}
    for node in reversed(nodes):
        below = children.get(node["id"], [])
        if below:
            visits = sum(totals[child][0] for child in below)
            value = sum(totals[child][1] for child in below)
            exhausted = all(nodes[child]["terminal"] for child in below)
            if node["terminal"] != exhausted:
                yield "node %d: terminal is %s; its children say %s" % (
                    node["id"], abbreviated(node["terminal"]), abbreviated(exhausted),
                )  # fmt: skip
            ends: tuple[Any, ...] = ("dead_end",) if exhausted else (None,)
        else:
            visits = int(node["terminal"])
            value = node["reward"] if node["terminal"] else 0.0
            ends = LEAF_ENDS if node["terminal"] else (None,)
        totals[node["id"]] = (visits, value)
        if node["visits"] != visits:
            yield "node %d: %d visits, but %d terminal leaves at or below it" % (
                node["id"], node["visits"], visits,
            )  # fmt: skip
        if abs(node["value"] - value) > 1e-6 * max(1.0, abs(value)):
            yield "node %d: value %g, but its terminal leaves have rewards of %g" % (
                node["id"], node["value"], value,
            )  # fmt: skip
        if node.get("end") not in ends:
            yield "node %d: end is %s; expected one of %s" % (
                node["id"], abbreviated(node.get("end")), abbreviated(list(ends)),
            )  # fmt: skip
