"""Reads search trees (contracts.md, section 4) and finds the trajectories in them.

A trajectory is the path from the root to a leaf: a terminal node without children, as in Agent-R's
`path_collection.py`. Nodes that the search never expanded are no leaves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReplyNode:
    """A reply and what the environment answered. `reward` is the score of the episode so far;
    `action` is empty where the reply held none; `tokens` counts those of the reply."""

    id: int
    parent: int | None
    reply: str
    action: str
    observation: str
    reward: float
    end: str | None
    cut: bool
    tokens: int


Steps: TypeAlias = tuple[ReplyNode, ...]
"""The nodes of a path, the root left out."""


@dataclass(frozen=True, slots=True)
class RevisionTree:
    """The tree of one task. `leaves` stand in the order of falling reward, those of equal reward as
    a depth-first walk meets them. `name` tells apart trees of one task from several inputs.
    `given` are the turns before the root of a tree that goes on from a trajectory, its `origin`:
    replies of somebody else, which all paths begin with."""

    name: str
    task_id: str
    prompt_seed: int
    opening: tuple[Message, ...]
    nodes: Mapping[int, ReplyNode]
    leaves: tuple[ReplyNode, ...]
    given: Steps = ()
    origin: Mapping[str, Any] | None = None

    def steps(self, node_id: int) -> Steps:
        """The path from the root to a node."""
        found: list[ReplyNode] = []
        node = self.nodes[node_id]
        while node.parent is not None:
            found.append(node)
            node = self.nodes[node.parent]
        return tuple(reversed(found))


def read_trees(inputs: Sequence[Iterable[Mapping[str, Any]]]) -> tuple[list[RevisionTree], int]:
    """The trees of all inputs, in order, and how many were left out because they broke off."""
    trees: list[RevisionTree] = []
    broken = 0
    for number, rows in enumerate(inputs):
        for row in rows:
            if row["end"] == "error":
                broken += 1
            else:
                trees.append(_tree(row, f"{row['id']}#{number}"))
    return trees, broken


def _tree(row: Mapping[str, Any], name: str) -> RevisionTree:
    nodes: dict[int, ReplyNode] = {}
    children: dict[int, list[int]] = defaultdict(list)
    terminal: set[int] = set()
    for entry in row["nodes"]:
        node = ReplyNode(
            id=entry["id"],
            parent=entry["parent"],
            reply=entry["reply"],
            action=entry["action"],
            observation=entry["observation"],
            reward=entry["reward"],
            end=entry["end"],
            cut=entry.get("cut", False),
            tokens=entry["tokens"][1],
        )
        nodes[node.id] = node
        if node.parent is not None:
            children[node.parent].append(node.id)
        if entry["terminal"]:
            terminal.add(node.id)
    leaves = [
        nodes[found]
        for found in _depth_first(children)
        if found in terminal and found not in children and nodes[found].parent is not None
    ]
    return RevisionTree(
        name=name,
        task_id=row["task_id"],
        prompt_seed=row["prompt_seed"],
        opening=tuple(row["messages"]),
        nodes=nodes,
        leaves=tuple(sorted(leaves, key=lambda leaf: -leaf.reward)),
        given=tuple(_given(turn, place) for place, turn in enumerate(row.get("prefix", ()))),
        origin=row.get("origin"),
    )


def _given(turn: Mapping[str, Any], place: int) -> ReplyNode:
    return ReplyNode(
        id=-1 - place,  # as no node is numbered
        parent=None,
        reply=turn["reply"],
        action=turn["action"],
        observation=turn["observation"],
        reward=turn["reward"],
        end=None,
        cut=turn.get("cut", False),
        tokens=0,
    )


def _depth_first(children: Mapping[int, Sequence[int]]) -> Iterable[int]:
    """All node ids, parents before children, siblings in the order in which they were kept."""
    waiting = [0]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children.get(node, ())))
