"""A tree that the released search recorded on AgentGym's TextCraft server, grown again on ours from
the replies that stand in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.backends.search.scripted import EPISODE, grown, reach_rules, search_rules

from agentc_backends.agents.common.connect import connect
from agentc_backends.agents.common.episode import Reply
from agentc_backends.agents.common.prompts import Message

RECORDED = Path(__file__).parents[4] / "shared/data/agent_r_fixtures/textcraft_mcts_tree.json"
RECORDING_TIES = 0
"""A tie seed that makes the three draws of the recording."""


class Replies:
    """Gives the recorded children's replies, in their order."""

    def __init__(self, tree: Mapping[str, Any]) -> None:
        self._tree = tree
        self._asked: dict[tuple[str, ...], int] = {}
        self.calls = 0

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        said = [m["content"] for m in messages if m["role"] == "assistant"]
        path = tuple(said[1:])  # the first is the acknowledgement
        node = self._tree
        for text in path:
            node = next(child for child in node["children"] if child["llm_response"] == text)
        number = self._asked.get(path, 0)
        self._asked[path] = number + 1
        self.calls += 1
        return Reply(node["children"][number]["llm_response"], "stop", 1, 1)


def recorded_lines(node: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    action = "" if node["depth"] == 0 else node["action"]
    names = ("depth", "obs", "env_score", "visits", "value", "is_terminal")
    lines = [(action, *(node[name] for name in names))]
    for child in node["children"]:
        lines += recorded_lines(child)
    return lines


def grown_lines(row: Mapping[str, Any], number: int = 0) -> list[tuple[Any, ...]]:
    node = row["nodes"][number]
    names = ("action", "depth", "observation", "reward", "visits", "value", "terminal")
    lines = [tuple(node[name] for name in names)]
    for child in row["nodes"]:
        if child["parent"] == number:
            lines += grown_lines(row, child["id"])
    return lines


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded tree is not beside the repository")
@pytest.mark.parametrize(("copying", "most"), [("snapshot", 36), ("fork", 40), ("replay", 45)])
def test_the_recorded_tree_grows_again(copying: str, most: int, environment: Any) -> None:
    tree = json.loads(RECORDED.read_text("utf-8"))
    policy = Replies(tree)
    prompt = replace(
        EPISODE.prompt, instruction="INST", acknowledgement="Ok.", reply_format="react"
    )

    async def run() -> dict[str, Any]:
        async with connect({"environment": environment.lease}, None, 4) as servers:
            return await grown(
                policy,
                servers.world,
                rules=search_rules(tie_seed=RECORDING_TIES),
                how=reach_rules(copying, 2 if copying != "replay" else 1),
                episode=replace(EPISODE, prompt=prompt),
                task_id="minecraft:diamond_block",
            )

    row = asyncio.run(run())
    assert grown_lines(row) == recorded_lines(tree)
    assert policy.calls == row["budget"]["samples"] == 12
    root = row["nodes"][0]
    assert (root["visits"], root["value"]) == (6, 2.0)
    assert sum(node["reward"] == 1.0 for node in row["nodes"]) == 2
    # The released search made 41 requests for it; such a flat tree leaves little to save.
    assert row["budget"]["environment_calls"] <= most
