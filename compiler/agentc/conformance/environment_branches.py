"""Forks and snapshots of an environment's episodes, held against replays."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

from agentc.conformance.check import demand
from agentc.conformance.environment_process import ServedEnvironment
from agentc.conformance.walks import (
    close_session,
    demand_same,
    need,
    open_session,
    reset_to,
    take_walk,
    tasks_of,
    words_for,
)


def check_fork(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """At points of a walk: a fork and a replay of the prefix tell the same from there on, and the
    original does not notice."""
    need(server, "fork")

    def branch(session: int, prefix: Sequence[str], task: str) -> int:
        del prefix, task
        return int(server.post("/fork", id=session)["id"])

    _check_branches(server, actions, branch, "fork")


def check_snapshot(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """The same with a snapshot, through JSON, into a new session and into a used one; what is no
    snapshot is refused and changes nothing."""
    need(server, "snapshot")
    used = open_session(server)
    tasks = tasks_of(server)
    reset_to(server, used, tasks[-1])
    into_used = False

    def branch(session: int, prefix: Sequence[str], task: str) -> int:
        nonlocal into_used
        saved = json.loads(json.dumps(server.post("/snapshot", id=session)["snapshot"]))
        into_used = not into_used
        body = {"snapshot": saved, "id": used} if into_used else {"snapshot": saved}
        return int(server.post("/restore", **body)["id"])

    _check_branches(server, actions, branch, "restored snapshot", keep=(used,))
    session = open_session(server)
    before = reset_to(server, session, tasks[0])
    nonsense: tuple[object, ...] = ({}, {"task_id": tasks[0]}, {"done": "maybe"}, [])
    for broken in nonsense:
        answer = server.send("POST", "/restore", {"id": session, "snapshot": broken})
        demand(answer.error is not None and answer.status < 500,
               f"restoring {broken!r} answers {answer.status}")  # fmt: skip
    saved = server.post("/snapshot", id=session)["snapshot"]
    for key, value in saved.items():
        damaged = {**saved, key: 7 if isinstance(value, dict) else {"nonsense": True}}
        answer = server.send("POST", "/restore", {"snapshot": damaged})
        demand(answer.status < 500, f"a snapshot with nonsense as `{key}`: {answer.status}")
    shown = server.get(f"/observation?id={session}")
    demand(shown == before[0], "a refused snapshot changes the session")


def _check_branches(
    server: ServedEnvironment,
    actions: Sequence[str],
    branch: Callable[[int, Sequence[str], str], int],
    what: str,
    keep: Sequence[int] = (),
) -> None:
    for task in tasks_of(server):
        words = words_for(server, task, actions)
        chance = random.Random(f"branch {task}")
        for cut in sorted({0, len(words) // 2, chance.randrange(len(words))}):
            session = open_session(server)
            opening = reset_to(server, session, task)
            prefix = [opening, *take_walk(server, session, words[:cut])]
            if prefix[-1][2]:
                close_session(server, session)
                continue
            branched = branch(session, words[:cut], task)
            where = f"task {task}, {what} after {cut} steps"
            demand(branched != session, f"{where}: it has the original's number")
            demand(server.get(f"/observation?id={branched}") == prefix[-1][0],
                   f"{where}: its observation is not the original's last")  # fmt: skip
            detour = list(reversed(words[cut:]))
            first = take_walk(server, branched, detour)
            rest = take_walk(server, session, words[cut:])
            replayed = open_session(server)
            reset_to(server, replayed, task)
            take_walk(server, replayed, words[:cut])
            demand_same(take_walk(server, replayed, detour), first, where)
            reset_to(server, replayed, task)
            whole = take_walk(server, replayed, words)
            demand_same(whole[cut:], rest, f"{where}: the original, beside it")
            for each in (session, replayed, *([] if branched in keep else [branched])):
                close_session(server, each)
