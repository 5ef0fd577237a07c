"""A policy and a world for tests of the search, in this process: replies in the order in which they
are asked for, and a toy game whose sessions can be saved, forked and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.backends.inside.test_same_results import inside

from agentc_backends.agents.common.episode import EpisodeRules, Reply, Step
from agentc_backends.agents.common.prompts import EpisodePrompt, Message
from agentc_backends.agents.search.settings import SearchRules
from agentc_backends.agents.search.tree import TreeRoot, task_roots
from agentc_backends.agents.search.tree_search import ReachRules, TreeSearch
from agentc_backends.clients.errors import ContextOverflowError

EPISODE = EpisodeRules(
    prompt=EpisodePrompt(
        instruction="Play.", acknowledgement="OK", examples=(), reply_format="action_only"
    ),
    split="train",
    reward_range=(0.0, 1.0),
    reward_kind="terminal",
    success_at=1.0,
)


def search_rules(**changes: Any) -> SearchRules:
    """Rules of the oracles: depth 2, three descents, two children."""
    fields: dict[str, Any] = {
        "depth": 2,
        "iterations": 3,
        "children": 2,
        "c_uct": 0.25,
        "dedup": "reply",
        "on_overflow": "drop_oldest",
        "flatten_observations": False,
        "seed": 0,
        "tie_seed": 0,
        "action_span": "line",
        "action_space": "optional",
        "no_action": "observe",
        "turn_numbers": "keep",
        "invalid_message": "What?",
        "invalid_reward": "keep",
    }
    return SearchRules(**{**fields, **changes})


def reach_rules(
    copying: Any = "snapshot",
    sessions: int = 2,
    verify_share: float = 0.0,
    same: Any = "observation",
) -> ReachRules:
    return ReachRules(copying=copying, sessions=sessions, same=same, verify_share=verify_share)


class Script:
    """Replies from a list; a prompt of more than `room` messages is too long."""

    def __init__(self, replies: Sequence[str], room: int = 10**6) -> None:
        self._replies = list(replies)
        self._room = room
        self.prompts: list[list[Message]] = []
        self.seeds: list[int] = []

    async def reply(self, messages: Sequence[Message], seed: int, affinity: str) -> Reply:
        self.prompts.append(list(messages))
        self.seeds.append(seed)
        if len(messages) > self._room:
            raise ContextOverflowError("too long")
        return Reply(self._replies.pop(0), "stop", 10, 1)


class Toy:
    """`a` then `b` wins, `x` loses, `n` is forbidden (reward -1), the rest does nothing. `log` has
    a word for each request; `liar` makes copies forget, `fickle` answers differently each time."""

    def __init__(self, *, liar: bool = False, fickle: bool = False) -> None:
        self.log: list[str] = []
        self.open = 0
        self.most = 0
        self.liar = liar
        self.fickle = fickle
        self.step_limit: int | None = None

    async def begin(self, task_id: str, prompt_seed: int) -> ToySession:
        self.log += ["create", "reset"]
        return ToySession(self, [])

    async def restored(self, snapshot: Mapping[str, Any]) -> ToySession:
        self.log.append("restore")
        return ToySession(self, self.copied(snapshot["done"]))

    def copied(self, done: Sequence[str]) -> list[str]:
        return list(done[:-1] if self.liar else done)


class ToySession:
    def __init__(self, world: Toy, done: list[str]) -> None:
        self._world = world
        self._done = done
        self.observation = "The game begins."
        self.step_limit = world.step_limit
        world.open += 1
        world.most = max(world.most, world.open)

    async def step(self, action: str) -> Step:
        self._world.log.append(f"step {action}")
        self._done.append(action)
        text = " ".join(self._done)
        if self._world.fickle:
            text += f" ({len(self._world.log)})"
        if action == "n":
            return Step(text, -1.0, False)
        if self._done[-2:] == ["a", "b"]:
            return Step(text, 1.0, True)
        return Step(text, 0.0, action == "x")

    async def restart(self, task_id: str, prompt_seed: int) -> None:
        self._world.log.append("reset")
        self._done = []

    async def snapshot(self) -> Mapping[str, Any]:
        self._world.log.append("snapshot")
        return {"done": list(self._done)}

    async def restore(self, snapshot: Mapping[str, Any]) -> None:
        self._world.log.append("restore")
        self._done = self._world.copied(snapshot["done"])

    async def fork(self) -> ToySession:
        self._world.log.append("fork")
        return ToySession(self._world, self._world.copied(self._done))

    async def close(self) -> None:
        self._world.log.append("close")
        self._world.open -= 1


async def grown(
    script: Any,
    world: Any,
    *,
    rules: SearchRules | None = None,
    how: ReachRules | None = None,
    episode: EpisodeRules = EPISODE,
    task_id: str = "task",
    root: TreeRoot | None = None,
) -> dict[str, Any]:
    """The row of one tree."""
    rules = rules or search_rules()
    [start] = task_roots([task_id], rules.seed, rules.tie_seed, 0)
    growth = TreeSearch(episode, rules, root or start)
    return await growth.run(script, world, how or reach_rules())


def drawn(row: Mapping[str, Any]) -> list[tuple[str, int, float, Any]]:
    """A tree as (path of actions, visits, value, end), in the order of its nodes."""
    paths: dict[int, str] = {0: ""}
    lines = []
    for node in row["nodes"]:
        if node["parent"] is not None:
            paths[node["id"]] = f"{paths[node['parent']]} {node['action']}".strip()
        lines.append((paths[node["id"]], node["visits"], node["value"], node["end"]))
    return lines


def leases(policy: Any, folder: Path) -> dict[str, Any]:
    return {"policy": policy.lease, "environment": inside("textcraft", folder)}
