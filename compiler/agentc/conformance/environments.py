"""What an environment server is held to: its episodes are the same everywhere, apart from each
other, within what it declares, and no request breaks it.

`environment_checks` takes a way to start the server; `serving.py` makes one from a backend's lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

from agentc.conformance.check import Check, Skipped, demand
from agentc.conformance.environment_process import (
    Row,
    ServedEnvironment,
    close_session,
    demand_same,
    episode_reward,
    expert_plan,
    need,
    open_session,
    play,
    read_row,
    reset_to,
    reward_range,
    take_step,
    take_walk,
    tasks_in,
    tasks_of,
    words_for,
)
from agentc.conformance.environment_requests import (
    Start,
    check_bad_input,
    check_close,
    check_expiry,
    check_fork,
    check_snapshot,
    check_token,
)

KINDS = ("terminal", "latest", "sum", "max")
CAPABILITIES = ("expert", "fork", "snapshot", "seed", "privileged")
_AT_ONCE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredEnvironment:
    """What the backend declares of the environment, to be compared with /meta."""

    splits: tuple[str, ...]
    reward_range: tuple[float, float]
    success_at: float
    max_turns: int
    capabilities: frozenset[str]


def environment_checks(
    start: Start, declared: DeclaredEnvironment | None = None, *, actions: Sequence[str] = ()
) -> tuple[Check, ...]:
    """The checks of an environment server. `actions` are words that mean something in it: worth
    giving where it has no expert."""

    def check(
        name: str, promise: str, run: Callable[[ServedEnvironment, Sequence[str]], None]
    ) -> Check:
        def alone() -> None:
            with start() as server:
                run(server, actions)

        return Check(name=name, promise=promise, run=alone)

    return (
        check("meta", "it says what it is", lambda server, _: check_meta(server, declared)),
        check("token", "only holders of the run's token reach it", check_token),
        Check(name="determinism", promise="deterministic across processes and hash seeds",
              run=partial(check_determinism, start, actions)),
        check("reset", "a task starts the same, whatever was before", check_reset),
        check("seeds", "a reset's seed changes what is declared, and nothing else", check_seeds),
        check("rewards", "rewards lie in the declared range", check_rewards),
        check("expert", "the expert's actions succeed", check_expert),
        check("privileged", "hidden texts are asked to no player", check_privileged),
        check("after the end", "an episode that is over stays over", check_after_end),
        check("concurrent episodes", "episodes at a time do not meet", check_concurrent),
        check("fork", "a fork continues as a replay does", check_fork),
        check("snapshot", "a restored episode continues as the original", check_snapshot),
        check("bad input", "no request breaks it", check_bad_input),
        check("close", "a closed session is gone", check_close),
        Check(name="expiry", promise="idle sessions are dropped, and their number is bounded",
              run=partial(check_expiry, start)),
    )  # fmt: skip


def check_meta(server: ServedEnvironment, declared: DeclaredEnvironment | None) -> None:
    """/health, and every key of /meta with a value that makes sense, as the backend declares."""
    demand(server.send("GET", "/health", token=None).status == 200, "GET /health is not 200")
    meta = server.meta
    for name, kind in (("name", str), ("version", str), ("splits", dict), ("identity", dict),
                       ("capabilities", list), ("success", dict)):  # fmt: skip
        demand(isinstance(meta.get(name), kind), f"/meta: `{name}` is {meta.get(name)!r:.80}")
    low, high = reward_range(meta)
    demand(low < high, f"/meta: `reward_range` is {meta['reward_range']}")
    demand(meta.get("reward_kind") in KINDS, f"/meta: `reward_kind` is {meta.get('reward_kind')!r}")
    at_least = meta["success"].get("at_least")
    demand(isinstance(at_least, (int, float)) and low < at_least <= high,
           f"/meta: success is at {at_least!r}, rewards run from {low:g} to {high:g}")  # fmt: skip
    steps = meta.get("max_steps")
    demand(isinstance(steps, int) and steps >= 1, f"/meta: `max_steps` is {steps!r}")
    unknown = [word for word in meta["capabilities"] if word not in CAPABILITIES]
    demand(not unknown, f"/meta: unknown capabilities {unknown}")
    seen: dict[str, str] = {}
    for split, tasks in meta["splits"].items():
        demand(bool(tasks), f"the split `{split}` holds no task")
        for task in tasks:
            demand(isinstance(task, str) and task != "", f"`{split}`: {task!r} is no task id")
            demand(task not in seen, f"{task} is in `{seen.get(task)}` and again in `{split}`")
            seen[task] = split
    if declared is not None:
        _check_declared(meta, declared)


def _check_declared(meta: Mapping[str, Any], declared: DeclaredEnvironment) -> None:
    found = DeclaredEnvironment(
        splits=tuple(meta["splits"]),
        reward_range=reward_range(meta),
        success_at=float(meta["success"]["at_least"]),
        max_turns=int(meta["max_steps"]),
        capabilities=frozenset(meta["capabilities"]),
    )
    for name in DeclaredEnvironment.__slots__:
        stated, served = getattr(declared, name), getattr(found, name)
        if isinstance(stated, frozenset):
            stated, served = sorted(stated), sorted(served)
        demand(stated == served, f"the backend declares `{name}` {stated}, /meta says {served}")


def check_determinism(start: Start, actions: Sequence[str]) -> None:
    """Two processes with different hash seeds: the same /meta and the same walks."""
    played: list[tuple[Mapping[str, Any], list[list[Row]]]] = []
    for hash_seed in (0, 1):
        with start(hash_seed=hash_seed) as server:
            walks = [
                play(server, task, words_for(server, task, actions)) for task in tasks_of(server)
            ]
            played.append((server.meta, walks))
    (one_meta, one), (other_meta, other) = played
    for name in {*one_meta, *other_meta}:
        demand(one_meta.get(name) == other_meta.get(name),
               f"/meta: `{name}` differs between two processes")  # fmt: skip
    for task, walk, again in zip(tasks_in(one_meta), one, other, strict=True):
        demand_same(walk, again, f"task {task}, another process and hash seed")


def check_reset(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """The same task again: at once, after steps of its own, after another task, after the end."""
    tasks = tasks_of(server)
    for task in tasks:
        words = words_for(server, task, actions)
        session = open_session(server)
        first = reset_to(server, session, task)
        demand_same([first], [reset_to(server, session, task)], f"task {task}, reset twice")
        walk = take_walk(server, session, words)
        demand_same([first], [reset_to(server, session, task)], f"task {task}, reset after steps")
        demand_same(walk, take_walk(server, session, words), f"task {task}, walked again")
        reset_to(server, session, tasks[0] if task != tasks[0] else tasks[-1])
        take_walk(server, session, words[:3])
        demand_same([first], [reset_to(server, session, task)], f"task {task} after another")
        close_session(server, session)


def check_seeds(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """The same seed gives the same text; another may give another only where that is declared,
    and does so for some task then: its first text, or else what actions are answered."""
    varied = False
    for task in tasks_of(server):
        session = open_session(server)
        texts = [reset_to(server, session, task, seed)[0] for seed in (0, 1, 2, 3, 1)]
        demand(texts[1] == texts[4], f"task {task}: seed 1 gives two texts")
        varied = varied or len(set(texts)) > 1
        if "seed" not in server.meta["capabilities"]:
            demand(not varied, f"task {task}: seeds change it, but `seed` is no capability")
        close_session(server, session)
    if "seed" in server.meta["capabilities"] and not varied:
        differing = [_seeds_differ(server, task, actions) for task in tasks_of(server)]
        demand(any(differing), "`seed` is declared, but no seed changed a text")


def _seeds_differ(server: ServedEnvironment, task: str, actions: Sequence[str]) -> bool:
    """Whether seeds change what a walk through a task is answered, the same for the same seed."""
    words, session = words_for(server, task, actions), open_session(server)
    walks = []
    for seed in (0, 1, 2, 3, 1):
        reset_to(server, session, task, seed)
        walks.append(take_walk(server, session, words))
    close_session(server, session)
    demand_same(walks[1], walks[4], f"task {task}, walked twice under seed 1")
    return any(walk != walks[0] for walk in walks)


def check_rewards(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """In every walk: rewards of the episode within the range, `done` true or false."""
    low, high = reward_range(server.meta)
    for task in tasks_of(server):
        rows = play(server, task, words_for(server, task, actions))
        rewards = [row[1] for row in rows[1:]]
        for number in range(1, len(rewards) + 1):
            score = episode_reward(server.meta["reward_kind"], rewards[:number])
            demand(low - 1e-9 <= score <= high + 1e-9,
                   f"task {task}: after {number} steps the reward is {score:g}, declared is "
                   f"{low:g} to {high:g}")  # fmt: skip


def check_expert(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """The plan, played to its end, is a success that ends the episode. A step limit may cut
    a plan short, but not all of them."""
    del actions
    need(server, "expert")
    wanted = server.meta["success"]["at_least"]
    solved = 0
    for task in tasks_of(server):
        plan = expert_plan(server, task)
        demand(bool(plan), f"task {task}: the expert has no steps")
        again = expert_plan(server, task)
        demand(plan == again, f"task {task}: the expert changes its plan")
        rows = play(server, task, plan)
        score = episode_reward(server.meta["reward_kind"], [row[1] for row in rows[1:]])
        solved += score >= wanted
        if len(rows) > len(plan):
            demand(score >= wanted, f"task {task}: the expert ends with {score:g}, not {wanted:g}")
            demand(rows[-1][2] is True, f"task {task}: the expert's last action does not end it")
    demand(solved > 0, "every plan of the expert is cut short by the end of the episode")


def check_privileged(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """A server that was not started to tell hidden texts refuses to; `/meta` alone says that there
    are some."""
    del actions
    need(server, "privileged")
    for tasks in ([], list(tasks_of(server)), ["no such task"]):
        answer = server.send("POST", "/privileged", {"task_ids": tasks})
        demand(answer.status == 403, f"/privileged is answered with {answer.status}, not 403")


def check_after_end(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """After the end, a step is an error or leaves everything as it is; a reset starts anew."""
    ended = 0
    kind = server.meta["reward_kind"]
    for task in tasks_of(server):
        session = open_session(server)
        first = reset_to(server, session, task)
        plan = expert_plan(server, task) if "expert" in server.meta["capabilities"] else []
        rows = take_walk(server, session, plan or words_for(server, task, actions))
        if rows and rows[-1][2]:
            ended += 1
            score = episode_reward(kind, [row[1] for row in rows])
            for word in (*plan[-2:], "xyzzy"):
                answer = server.send("POST", "/step", {"id": session, "action": word})
                demand(answer.status < 500, f"task {task}: a step after the end gives a 500")
                if answer.error is not None:
                    continue
                row = read_row(answer.content)
                demand(row[2], f"task {task}: `done` falls back to false after the end")
                anew = row[1] if kind == "sum" else row[1] - score
                demand(anew <= 1e-9, f"task {task}: a step after the end is rewarded with {row[1]}")
            demand_same([first], [reset_to(server, session, task)], f"task {task} after its end")
        close_session(server, session)
    if not ended:
        raise Skipped("no episode came to its end: there is no expert, and no walk got there")


def check_concurrent(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """Walks at the same time, in threads and in turns, tell what they tell alone."""
    tasks = (tasks_of(server) * _AT_ONCE)[:_AT_ONCE]
    words = [words_for(server, task, actions) for task in tasks]
    alone = [play(server, task, each) for task, each in zip(tasks, words, strict=True)]
    with ThreadPoolExecutor(len(tasks)) as pool:
        together = list(pool.map(partial(play, server), tasks, words))
    for task, one, other in zip(tasks, alone, together, strict=True):
        demand_same(one, other, f"task {task} beside others")
    sessions = [open_session(server) for _ in tasks]
    demand(len(set(sessions)) == len(sessions), "two sessions have one number")
    rows = [
        [reset_to(server, session, task)] for session, task in zip(sessions, tasks, strict=True)
    ]
    for step in zip_longest(*words):
        for index, word in enumerate(step):
            if word is not None and not rows[index][-1][2]:
                rows[index].append(take_step(server, sessions[index], word))
    for task, one, other in zip(tasks, alone, rows, strict=True):
        demand_same(one, other, f"task {task}, in turns with others")
    for session in sessions:
        close_session(server, session)
