"""A search tree whose counts do not follow from its leaves is found, and the node is named."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from agentc.runtime.contracts.artifacts import ContractError, check_artifact

RANGE = {"reward_range": [0.0, 1.0]}


def node(number: int, parent: int | None, depth: int, **fields: Any) -> dict[str, Any]:
    """A node that was kept, and not expanded."""
    plain = {
        "id": number, "parent": parent, "depth": depth, "reply": f"r{number}", "action": "a",
        "observation": "o", "reward": 0.0, "visits": 0, "value": 0.0, "terminal": False,
        "end": None, "tokens": [3, 1],
    }  # fmt: skip
    return {**plain, **fields}


TREE: dict[str, Any] = {
    "id": "t",
    "task_id": "t",
    "split": "train",
    "seed": 1,
    "prompt_seed": 0,
    "messages": [{"role": "user", "content": "Craft."}],
    "end": "searched",
    "error": None,
    "iterations": 1,
    "nodes": [
        node(0, None, 0, reply="", action="", observation="", visits=2, value=1.0),
        node(1, 0, 1, visits=2, value=1.0, terminal=True, end="dead_end"),
        node(2, 0, 1),
        node(3, 1, 2, reward=1.0, visits=1, value=1.0, terminal=True, end="done"),
        node(4, 1, 2, visits=1, terminal=True, end="depth"),
    ],
    "budget": {"model_calls": 4, "samples": 4, "environment_calls": 9, "steps": 4},
}


def found(folder: Path, *rows: Any) -> str:
    (folder / "trees.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    try:
        check_artifact("SearchTrees", folder, RANGE, {}, {})
    except ContractError as error:
        return str(error)
    return ""


def test_a_tree_that_adds_up_passes(tmp_path: Path) -> None:
    lost = {**TREE, "id": "u", "task_id": "u", "end": "error", "error": "gone", "nodes": []}
    assert found(tmp_path, TREE, lost) == ""


@pytest.mark.parametrize(
    ("number", "fields", "expected"),
    [
        (0, {"visits": 3}, "node 0: 3 visits, but 2 terminal leaves"),
        (1, {"value": 0.5}, "node 1: value 0.5, but its terminal leaves have rewards of 1"),
        (1, {"terminal": False, "end": None}, "node 1: terminal is false; its children say true"),
        (1, {"end": "done"}, 'node 1: end is "done"'),
        (2, {"visits": 1}, "node 2: 1 visits, but 0"),
        (2, {"end": "depth"}, 'node 2: end is "depth"'),
        (3, {"end": None}, "node 3: end is null"),
        (3, {"reward": 7.0}, "node 3: reward: 7 is outside"),
        (3, {"parent": 4}, "node 3: parent is 4; parents come before"),
        (3, {"depth": 3}, "node 3: depth is 3 below a node of depth 1"),
        (4, {"id": 9}, "expected node 4, found the id 9"),
        (4, {"reply": None}, "node 4: reply is null, no text"),
        (0, {"reply": "ROOT"}, "the root has no reply"),
        (0, {"depth": 1}, "the root has no parent and depth 0"),
    ],
)
def test_a_faulty_node_is_named(
    tmp_path: Path, number: int, fields: dict[str, Any], expected: str
) -> None:
    tree = copy.deepcopy(TREE)
    tree["nodes"][number].update(fields)
    assert expected in found(tmp_path, tree)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"id": "x"}, "field id: expected the task's"),
        ({"end": "done"}, '"done" is not one of searched, error'),
        ({"end": "error"}, "expected what went wrong"),
        ({"nodes": []}, "expected a list with a root"),
        ({"messages": []}, "expected a non-empty list of messages"),
        ({"budget": {}}, "model_calls is null, no count"),
    ],
)
def test_a_faulty_tree_is_named(tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    assert expected in found(tmp_path, {**TREE, **fields})


def test_a_task_has_one_tree(tmp_path: Path) -> None:
    assert "'t' is in row 1 already" in found(tmp_path, TREE, TREE)
