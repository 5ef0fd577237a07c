"""What an invalid reply costs, what counts as an action, and what a full context forgets: one
episode at a time, with a scripted policy and a world that counts actions as ScienceWorld does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentc_backends.agents.common.episode import Attempt, EpisodeRules, Reply, Step
from agentc_backends.agents.common.prompts import EpisodePrompt, Message
from agentc_backends.agents.rollout.play import TurnRules, play
from agentc_backends.clients.errors import ContextOverflowError

ATTEMPT = Attempt(position=0, task_id="t", number=0, seed=1, prompt_seed=0)


def rules(kind: Any = "terminal", **prompt: Any) -> EpisodeRules:
    values = {"instruction": "I", "acknowledgement": "OK", "examples": (), "reply_format": "react"}
    return EpisodeRules(
        prompt=EpisodePrompt(**{**values, **prompt}),
        split="train",
        reward_range=(-1.0, 1.0),
        reward_kind=kind,
        success_at=1.0,
    )


def turns(**changes: Any) -> TurnRules:
    values: dict[str, Any] = {
        "max_turns": 120,
        "on_invalid": "observe",
        "on_overflow": "end",
        "invalid_message": "What?",
        "invalid_reward": "keep",
        "action_span": "line",
        "action_space": "optional",
        "no_action": "invalid",
    }
    return TurnRules(**{**values, **changes})


class Script:
    """Replies in order, the last for ever; more than `room` messages are too long."""

    def __init__(self, *replies: str, room: int = 1000) -> None:
        self.replies = list(replies)
        self.room = room
        self.shown: list[list[str]] = []

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        if len(messages) > self.room:
            raise ContextOverflowError("too long")
        self.shown.append([message["content"] for message in messages])
        text = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return Reply(text, "stop", 1, 1)


class World:
    """Ends an episode after `limit` actions, and pays for the n-th what `rewards` says."""

    def __init__(self, limit: int | None = None, rewards: Sequence[float] = ()) -> None:
        self.step_limit = limit
        self.observation = "TASK"
        self.rewards = rewards
        self.actions: list[str] = []

    @asynccontextmanager
    async def open(self, task_id: str, prompt_seed: int) -> AsyncIterator[World]:
        yield self

    async def step(self, action: str) -> Step:
        self.actions.append(action)
        number = len(self.actions)
        reward = self.rewards[number - 1] if number <= len(self.rewards) else 0.0
        return Step(f"o{number}", reward, number == self.step_limit)


def played(script: Script, world: World, how: TurnRules, what: EpisodeRules) -> dict[str, Any]:
    return asyncio.run(play(what, how, ATTEMPT, script, world))


def test_an_invalid_reply_counts_against_the_environments_own_limit() -> None:
    """A task of 15 steps takes 15 turns whatever the replies are, as in ETO's code."""
    script = Script(*["What now?", "Action: look"] * 40)
    row = played(script, World(limit=15), turns(), rules("max"))
    assert (row["turns"], row["invalid"]) == (15, 8)
    assert row["end"] == "limit"


def test_the_stages_limit_holds_where_the_environment_has_none_or_a_later_one() -> None:
    for limit in (None, 15):
        row = played(Script("Hm."), World(limit=limit), turns(max_turns=4), rules())
        assert (row["turns"], row["end"]) == (4, "limit")


@pytest.mark.parametrize(
    ("kind", "keep", "zero"),
    [("max", 0.75, 0.25), ("latest", 0.25, 0.25), ("terminal", 0.25, 0.25), ("sum", 1.0, 0.25)],
)
def test_an_invalid_reply_may_cost_the_reward_so_far(kind: Any, keep: float, zero: float) -> None:
    """ETO's oracle E5: a format error sets the reward to 0, and later rewards count from there."""
    for how, reward in (("keep", keep), ("zero", zero)):
        script = Script("Action: a", "no format", "Action: b")
        world = World(limit=3, rewards=[0.75, 0.25])
        row = played(script, world, turns(invalid_reward=how), rules(kind))
        assert row["reward"] == reward, how


def test_zero_is_a_reward_like_others_for_what_comes_after() -> None:
    """ETO's oracle E5b: a format error first, then a fatal action of -1: the reward is 0."""
    world = World(limit=2, rewards=[-1.0])
    row = played(Script("?", "Action: x"), world, turns(invalid_reward="zero"), rules("max"))
    assert row["reward"] == 0.0
    row = played(Script("Action: x"), World(1, [-1.0]), turns(invalid_reward="zero"), rules("max"))
    assert row["reward"] == -1.0


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Thought: x\nAction: look", "look"),
        ("Action: a\nAction: b", "b"),
        ("Action: 1. look", "1. look"),
        ("Action: a\nmore", "a\nmore"),
        ("Action 1: look", "Action 1: look"),
        ("I would look around.", "I would look around."),
        ("Thought: x\nAction:", ""),
        ("", ""),
    ],
)
def test_agent_rs_evaluation_takes_every_reply_for_an_action(reply: str, action: str) -> None:
    """What follows the last `Action:` as it stands, else the whole reply."""
    world = World(limit=1)
    row = played(
        Script(reply), world, turns(action_span="after_last", no_action="whole_reply"), rules()
    )
    assert (world.actions, row["invalid"]) == ([action], 0)


def test_a_full_context_forgets_the_oldest_observation_and_the_reply_after_it() -> None:
    replies = [f"Action: a{number}" for number in range(1, 6)]
    script = Script(*replies, room=7)
    row = played(script, World(limit=5), turns(on_overflow="drop_oldest"), rules(system="S"))
    head = ["S", "I", "OK", "TASK", "Action: a1"]
    assert script.shown[2:] == [
        [*head, "Observation: o2"],
        [*head, "Observation: o3"],
        [*head, "Observation: o4"],
    ]
    assert [m["content"] for m in row["messages"]][4::2] == replies
    assert (row["forgotten"], row["turns"], row["end"]) == (3, 5, "failure")
    script = Script(*replies, room=5)
    row = played(script, World(), turns(on_overflow="drop_oldest"), rules(system="S"))
    assert (row["end"], row["turns"]) == ("overflow", 1)
    assert "forgotten" not in row


@pytest.mark.parametrize("prefix", ["", "Observation:\n"])
def test_observations_stand_after_the_prompts_prefix(prefix: str) -> None:
    script = Script("Action: a", "no format")
    row = played(script, World(), turns(max_turns=3), rules(observation_prefix=prefix))
    assert [m["content"] for m in row["messages"][2::2]] == [
        "TASK",
        f"{prefix}o1",
        f"{prefix}What?",
    ]
