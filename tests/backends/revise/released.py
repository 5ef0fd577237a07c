"""Trees as Agent-R's released code stores them, as rows of trees.jsonl; and settings of a stage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.agents.common.episode import Reply
from agentc_backends.agents.revise.backend import THOUGHTS
from agentc_backends.agents.revise.pairs import Message, RevisionTree, read_trees
from agentc_backends.agents.revise.rules import (
    JudgeRules,
    ReviseRules,
    RewardThresholds,
    SignalRules,
)

FIXTURES = Path(__file__).resolve().parents[4] / "shared/data/agent_r_fixtures"


def recorded_row(name: str, task_id: str) -> dict[str, Any]:
    """A recorded tree; the test is skipped where the recordings are not at hand."""
    path = FIXTURES / name
    if not path.exists():
        pytest.skip(f"the recording {name} is not on this machine (../shared/data)")
    return converted(json.loads(path.read_text(encoding="utf-8")), task_id)


def converted(root: dict[str, Any], task_id: str) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = []

    def add(node: dict[str, Any], parent: int | None) -> None:
        number = len(nodes)
        nodes.append(
            {
                "id": number,
                "parent": parent,
                "depth": node["depth"],
                "reply": "" if parent is None else node["llm_response"],
                "action": "" if parent is None else node["action"],
                "observation": node["obs"] if parent is not None else "",
                "reward": float(node["env_score"]),
                "visits": node["visits"],
                "value": node["value"],
                "terminal": node["is_terminal"],
                "end": "depth" if node["is_terminal"] and not node["children"] else None,
                "tokens": [10, 3],
            }
        )
        for child in node["children"]:
            add(child, number)

    add(root, None)
    return {
        "id": task_id,
        "task_id": task_id,
        "split": "train",
        "seed": 0,
        "prompt_seed": 0,
        "messages": root["state"],
        "end": "searched",
        "error": None,
        "iterations": 1,
        "nodes": nodes,
        "budget": {},
    }


def tree_of(row: dict[str, Any]) -> RevisionTree:
    (tree,), broken = read_trees([[row]])
    assert broken == 0
    return tree


def wide_row(leaves: int, task_id: str = "wide") -> dict[str, Any]:
    """A root with so many leaves, of rewards 0.0, 0.1, ... 1.0 in turn."""
    nodes = [node(0, None, 0.0)]
    nodes += [node(number, 0, number % 11 / 10) for number in range(1, leaves + 1)]
    return grown(nodes, task_id)


def grown(nodes: list[dict[str, Any]], task_id: str) -> dict[str, Any]:
    opening = [
        {"role": "user", "content": "Act."},
        {"role": "assistant", "content": "OK"},
        {"role": "user", "content": "Goal: craft it."},
    ]
    return {
        "id": task_id,
        "task_id": task_id,
        "prompt_seed": 0,
        "messages": opening,
        "end": "searched",
        "nodes": nodes,
    }


def node(
    number: int,
    parent: int | None,
    reward: float = 0.0,
    action: str = "",
    leaf: bool = True,
    observation: str = "",
) -> dict[str, Any]:
    return {
        "id": number,
        "parent": parent,
        "reply": "" if parent is None else f"Thought: {number}\nAction: {action or number}",
        "action": action or str(number),
        "observation": observation or f"seen {number}",
        "reward": reward,
        "terminal": leaf and parent is not None,
        "end": "done" if leaf else None,
        "tokens": [10, 3],
    }


def signal(**changes: Any) -> SignalRules:
    values = {
        "thoughts": THOUGHTS,
        "action": "wait",
        "acknowledgement": "ok.",
        "draw": "pair",
        "reply_format": "react",
    }
    return SignalRules(**{**values, **changes})


def judge_rules(**changes: Any) -> JudgeRules:
    values = {
        "start": "root",
        "unparsed": "bad",
        "on_no_bad": "whole",
        "parser": "strict",
        "once_per": "path",
        "instruction": None,
        "seed": 123,
    }
    return JudgeRules(**{**values, **changes})


def rules(
    parts: Sequence[str] = ("direct",),
    alpha: float = 0.5,
    beta: float = 0.2,
    alpha_is: Any = "above",
    beta_is: Any = "gap",
    signals: SignalRules | None = None,
    **changes: Any,
) -> ReviseRules:
    values: dict[str, Any] = {
        "parts": tuple(parts),
        "bars": RewardThresholds(alpha=alpha, alpha_is=alpha_is, beta=beta, beta_is=beta_is),
        "signal": signals or signal(),
        "best_reward": 1.0,
        "dedup_good": True,
        "dedup_revision": False,
        "max_pairs_per_tree": None,
        "max_revision": None,
        "max_good": None,
        "verify": "off",
        "seed": 123,
        "observation_prefix": "Observation: ",
    }
    return ReviseRules(**{**values, **changes})


class ScriptedJudge:
    """Answers questions by the action of their current step; keeps what it was asked."""

    def __init__(self, answers: dict[str, str], otherwise: str = "Judgement: Good") -> None:
        self.answers = answers
        self.otherwise = otherwise
        self.questions: list[str] = []
        self.seeds: list[int] = []

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        asked = messages[-1]["content"]
        self.questions.append(asked)
        self.seeds.append(seed)
        action = asked.split("Current step:\nAction: ")[1].split("\n")[0]
        return Reply(self.answers.get(action, self.otherwise), "stop", 20, 5)


async def nothing_lost() -> str | None:
    return None
