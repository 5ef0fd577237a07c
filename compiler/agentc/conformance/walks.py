"""Short walks through an environment, for its checks: which actions, and what they gave.

Actions are the expert's where there is one, words of the caller's, and nonsense, drawn from the
task's name alone, so that a walk can be repeated anywhere.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

from agentc.conformance.check import Fault, Skipped, demand
from agentc.conformance.environment_process import ServedEnvironment

NONSENSE = (
    "",
    " ",
    "xyzzy",
    "Action: xyzzy",
    "wörter, 漢字 and \U0001f680",
    "{}",
    "a " * 2000,
    "\x00\x07",
    "-1",
)
_WALK = 12
_MOST_TASKS = 4
Row: TypeAlias = list[Any]
"""[observation, reward, done] of one reply."""


def need(server: ServedEnvironment, capability: str) -> None:
    if capability not in server.meta["capabilities"]:
        raise Skipped(f"`{capability}` is not declared")


def reward_range(meta: Mapping[str, Any]) -> tuple[float, float]:
    match meta.get("reward_range"):
        case [int() | float() as low, int() | float() as high]:
            return float(low), float(high)
    raise Fault(f"/meta: `reward_range` is {meta.get('reward_range')!r}")


def tasks_of(server: ServedEnvironment) -> list[str]:
    return tasks_in(server.meta)


def tasks_in(meta: Mapping[str, Any]) -> list[str]:
    """A few tasks: the first and the last of every split, as far as they go."""
    ends = [task for part in meta["splits"].values() for task in (part[0], part[-1])]
    return list(dict.fromkeys(ends))[:_MOST_TASKS]


def expert_plan(server: ServedEnvironment, task: str) -> list[str]:
    return [str(step["action"]) for step in server.post("/expert", task_id=task, seed=0)["steps"]]


def words_for(server: ServedEnvironment, task: str, actions: Sequence[str]) -> list[str]:
    """The actions of a walk, drawn from the task's name: mostly the expert's, in order."""
    chance = random.Random(f"walk {task}")
    plan = expert_plan(server, task) if "expert" in server.meta["capabilities"] else []
    known = [*actions, *plan]
    words: list[str] = []
    for _ in range(_WALK):
        draw = chance.random()
        if plan and draw < 0.5:
            words.append(plan.pop(0))
        elif known and draw < 0.75:
            words.append(chance.choice(known))
        else:
            words.append(chance.choice(NONSENSE))
    return words


def open_session(server: ServedEnvironment) -> int:
    created = server.post("/create")
    number = created.get("id") if isinstance(created, dict) else created
    if not isinstance(number, int):
        raise Fault(f"/create answers {str(created)[:80]!r}, without a number")
    return number


def reset_to(server: ServedEnvironment, session: int, task: str, seed: int = 0) -> Row:
    return read_row(server.post("/reset", id=session, task_id=task, seed=seed))


def take_step(server: ServedEnvironment, session: int, action: str) -> Row:
    return read_row(server.post("/step", id=session, action=action))


def close_session(server: ServedEnvironment, session: int) -> None:
    server.post("/close", id=session)


def take_walk(server: ServedEnvironment, session: int, words: Sequence[str]) -> list[Row]:
    """What the actions gave, up to the end of the episode."""
    rows: list[Row] = []
    for word in words:
        rows.append(take_step(server, session, word))
        if rows[-1][2]:
            break
    return rows


def play(server: ServedEnvironment, task: str, words: Sequence[str]) -> list[Row]:
    """A whole walk in a session of its own; the first row is the reset's."""
    session = open_session(server)
    rows = [reset_to(server, session, task), *take_walk(server, session, words)]
    close_session(server, session)
    return rows


def read_row(content: Any) -> Row:
    """[observation, reward, done] of a reply."""
    match content:
        case {"observation": str(text), "reward": int() | float() as reward, "done": bool(done)}:
            return [text, float(reward), done]
    raise Fault(f"not an observation with reward and done: {str(content)[:120]}")


def episode_reward(kind: str, rewards: Sequence[float]) -> float:
    if not rewards:
        return 0.0
    return {"sum": sum(rewards), "max": max(rewards)}.get(kind, rewards[-1])


def demand_same(expected: Sequence[Row], found: Sequence[Row], where: str) -> None:
    for number, (one, other) in enumerate(zip_longest(expected, found)):
        demand(one == other, f"{where}: row {number} is {_shown(other)}, expected {_shown(one)}")


def _shown(row: Row | None) -> str:
    if row is None:
        return "missing"
    text, reward, done = row
    return f"[{text[:160]!r}, {reward:g}, {done}]"
