"""The simulator's own limit of steps, which differs from task to task, holds for replies without an
action as well: played on the real simulator, through the rollout's client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.backends.rollout.test_turns import rules, turns
from tests.backends.sciworld.test_sciworld_simulator import Server

from agentc_backends.agents.common.connect import AgentGymWorld
from agentc_backends.agents.common.episode import Attempt, Reply
from agentc_backends.agents.common.prompts import Message
from agentc_backends.agents.rollout.play import play
from agentc_backends.clients import EnvironmentClient

pytestmark = pytest.mark.slow
SHORT = Attempt(position=0, task_id="find-animal:0", number=0, seed=1, prompt_seed=0)
"""A task of 15 steps in ETO's list."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path / "server", "--processes", "1", "--step-limit", "per_task")
    yield found
    found.stop()


class EveryOther:
    """Replies without an action, and looks around in between."""

    def __init__(self) -> None:
        self.replies = 0

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        self.replies += 1
        return Reply("Action: look around" if self.replies % 2 else "Hm.", "stop", 1, 1)


def test_a_task_of_15_steps_takes_15_turns(server: Server) -> None:
    async def played() -> dict[str, Any]:
        async with EnvironmentClient(str(server.client.base_url)) as client:
            return await play(rules("max"), turns(), SHORT, EveryOther(), AgentGymWorld(client))

    row = asyncio.run(played())
    assert (row["turns"], row["invalid"], row["end"]) == (15, 7, "limit")
