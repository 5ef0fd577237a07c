"""Requests that an environment server must refuse, sessions that must be gone, and forks and
snapshots of episodes, compared with replays."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from agentc.conformance.check import Skipped, demand
from agentc.conformance.environment_process import (
    NotStartedError,
    ServedEnvironment,
    close_session,
    demand_same,
    need,
    open_session,
    play,
    reset_to,
    take_walk,
    tasks_of,
    words_for,
)

_BIG_BODY = 32 << 20


class Start(Protocol):
    """Starts a server in a process of its own, which ends with the context."""

    def __call__(
        self, *, hash_seed: int = 0, extra: Sequence[str] = ()
    ) -> AbstractContextManager[ServedEnvironment]: ...


def check_token(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """Without the token, or with another, every route but /health is closed."""
    del actions
    routes = [("GET", "/meta"), ("GET", "/observation?id=0"), ("POST", "/create"),
              ("POST", "/reset"), ("POST", "/step"), ("POST", "/close")]  # fmt: skip
    for method, path in routes:
        for token in (None, "", "another"):
            answer = server.send(method, path, {}, token=token)
            demand(answer.status in (401, 403),
                   f"{method} {path} with the token {token!r} answers {answer.status}")  # fmt: skip


def check_bad_input(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """Requests that make no sense are refused without a 500, and an episode that runs beside them
    does not notice."""
    task = tasks_of(server)[0]
    words = words_for(server, task, actions)
    expected = play(server, task, words)
    session = open_session(server)
    rows = [reset_to(server, session, task)]
    for method, path, body, raw in _bad_requests(session, task):
        answer = server.send(method, path, body, raw=raw)
        shown = (
            f"{method} {path} {raw[:40]!r}" if raw else f"{method} {path} {json.dumps(body)[:80]}"
        )
        demand(answer.error is not None, f"{shown} is not refused: {str(answer.content)[:80]}")
        demand(answer.status < 500 or answer.status == 501, f"{shown} answers {answer.status}")
    rows += take_walk(server, session, words)
    demand_same(expected, rows, f"task {task}, beside bad requests")
    close_session(server, session)


def _bad_requests(session: int, task: str) -> Iterator[tuple[str, str, object, bytes | None]]:
    for number in (-1, 10**9, 2**70, "0", None, True, 1.5, [session], {"id": session}):
        yield "POST", "/step", {"id": number, "action": "xyzzy"}, None
        yield "POST", "/reset", {"id": number, "task_id": task, "seed": 0}, None
    for action in (None, 7, ["xyzzy"], {"action": "xyzzy"}, True):
        yield "POST", "/step", {"id": session, "action": action}, None
    for other in ("no such task", "", "../../etc/passwd", 7, None, ["a"]):
        yield "POST", "/reset", {"id": session, "task_id": other, "seed": 0}, None
    for seed in ("zero", 1.5, [0], 2**70):
        yield "POST", "/reset", {"id": session, "task_id": task, "seed": seed}, None
    yield "POST", "/step", {"id": session}, None
    yield "POST", "/step", {}, None
    yield "POST", "/reset", {"id": session}, None
    for raw in (b"", b"{", b"[]", b'"text"', b"null", b'{"id": NaN, "action": ""}', b"\xff\xfe",
                b"[" * 100_000):  # fmt: skip
        yield "POST", "/step", None, raw
    huge = json.dumps({"id": session, "action": "a" * _BIG_BODY}).encode()
    yield "POST", "/step", None, huge
    for query in ("", "?id=", "?id=-1", "?id=1e3", "?id=999999999", "?number=0"):
        yield "GET", f"/observation{query}", None, None
    yield "GET", "/no/such/route", None, None
    yield "GET", "/step", None, None


def check_close(server: ServedEnvironment, actions: Sequence[str]) -> None:
    """A closed session answers nothing but errors, closing again included, and no number is
    given out twice."""
    task = tasks_of(server)[0]
    words = words_for(server, task, actions)
    numbers = set()
    for _ in range(3):
        session = open_session(server)
        demand(session not in numbers, f"session {session} is given out a second time")
        numbers.add(session)
        reset_to(server, session, task)
        take_walk(server, session, words[:2])
        close_session(server, session)
        for path, body in (("/step", {"id": session, "action": "xyzzy"}),
                           ("/reset", {"id": session, "task_id": task, "seed": 0})):  # fmt: skip
            answer = server.send("POST", path, body)
            demand(answer.error is not None, f"{path} on a closed session is not refused")
            demand(answer.status < 500, f"{path} on a closed session answers {answer.status}")
        again = server.send("POST", "/close", {"id": session})
        demand(again.status < 500, f"closing twice answers {again.status}")
        demand(again.content is not True, "closing twice claims to have closed it")


def check_expiry(start: Start) -> None:
    """With `--max-sessions` and `--idle-timeout`, which our environment servers take."""
    bound, idle = ["--max-sessions", "3"], ["--idle-timeout", "1"]
    try:
        with start(extra=bound) as server:
            for _ in range(3):
                open_session(server)
            full = server.send("POST", "/create", {})
            demand(full.status in (429, 503), f"a fourth session of three: {full.status}")
        with start(extra=idle) as server:
            session = open_session(server)
            reset_to(server, session, tasks_of(server)[0])
            time.sleep(2)
            gone = server.send("POST", "/step", {"id": session, "action": "xyzzy"})
            demand(gone.error is not None, "a session that was idle for too long still answers")
            demand(gone.status < 500, f"a step in a session that has expired: {gone.status}")
    except NotStartedError as error:
        if error.status == 2:
            raise Skipped(f"the program does not take {' '.join([*bound, *idle])}") from None
        raise


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
