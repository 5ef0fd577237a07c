"""TextCraft over HTTP: AgentGym's protocol, and what tree search and rollouts need beyond it.

The replies of AgentGym's own routes are those of its TextCraft server; the README lists the
additions and the few differences. Neighbours: `sessions.py`, `wire.py`, `job_serve.py`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from agentc_backends.textcraft.access import TokenGate
from agentc_backends.textcraft.environment import TextCraftEnvironment
from agentc_backends.textcraft.sessions import (
    Session,
    SessionStore,
    TooManySessionsError,
    UnknownSessionError,
)
from agentc_backends.textcraft.wire import (
    JsonReply,
    RequestError,
    integer,
    invalid,
    mapping,
    number,
    query_integer,
    read_body,
    text,
)

_Handler = Callable[[Request], Awaitable[Response]]


def create_app(
    open_environment: Callable[[], TextCraftEnvironment],
    *,
    token: str | None = None,
    max_sessions: int = 4096,
    idle_timeout: float = 3600.0,
    clock: Callable[[], float] = time.monotonic,
) -> ASGIApp:
    """The ASGI application; `open_environment` gives each session an environment of its own."""
    store = SessionStore(
        open_environment, clock, max_sessions=max_sessions, idle_timeout=idle_timeout
    )
    handlers = _Handlers(store, open_environment())
    app = Starlette(routes=handlers.routes())
    return app if token is None else TokenGate(app, token)


class _Handlers:
    """One method for each route; none awaits between looking a session up and using it."""

    def __init__(self, store: SessionStore, reference: TextCraftEnvironment) -> None:
        self._store = store
        # Never reset or stepped: answers what does not depend on a session.
        self._reference = reference

    def routes(self) -> list[Route]:
        posts: dict[str, Callable[[dict[str, Any]], object]] = {
            "/create": self._create,
            "/reset": self._reset,
            "/step": self._step,
            "/close": self._close,
            "/fork": self._fork,
            "/snapshot": self._snapshot,
            "/restore": self._restore,
            "/expert": self._expert,
        }
        gets: dict[str, Callable[[Request], object]] = {
            "/": lambda _: "This is environment TextCraft.",
            "/health": lambda _: {"status": "ok"},
            "/meta": self._meta,
            "/observation": self._observation,
            "/detail": self._detail,
        }
        return [
            *(Route(path, _with_body(handle), methods=["POST"]) for path, handle in posts.items()),
            *(Route(path, _plain(handle), methods=["GET"]) for path, handle in gets.items()),
        ]

    def _create(self, body: dict[str, Any]) -> object:
        session = self._store.create()
        session.reset(self._first_task(), 0)
        return _opening(session)

    def _reset(self, body: dict[str, Any]) -> object:
        session_number = integer(body, "id")
        task_id = text(body, "task_id") if "task_id" in body else self._task_at(body)
        seed = integer(body, "seed", 0)
        session = self._store.get(session_number)
        session.reset(self._known_task(task_id), seed)
        return _opening(session)

    def _step(self, body: dict[str, Any]) -> object:
        session_number, action = integer(body, "id"), text(body, "action")
        session = self._store.get(session_number)
        session.step(action)
        return _answer(session)

    def _close(self, body: dict[str, Any]) -> object:
        return self._store.close(integer(body, "id"))

    def _fork(self, body: dict[str, Any]) -> object:
        source = self._store.get(integer(body, "id"))
        fork = self._store.create()
        fork.restore(source.snapshot())
        return _opening(fork)

    def _snapshot(self, body: dict[str, Any]) -> object:
        return {"snapshot": self._store.get(integer(body, "id")).snapshot()}

    def _restore(self, body: dict[str, Any]) -> object:
        """Into the session given, or into a new one."""
        snapshot = mapping(body, "snapshot")
        existing = self._store.get(integer(body, "id")) if "id" in body else None
        session = existing or self._store.create()
        try:
            session.restore(snapshot)
        except ValueError as error:
            if existing is None:
                self._store.close(session.number)
            raise invalid("snapshot", ("body", "snapshot"), str(error), None) from error
        return _opening(session)

    def _expert(self, body: dict[str, Any]) -> object:
        task_id, seed = self._known_task(text(body, "task_id")), integer(body, "seed", 0)
        steps = self._reference.expert_steps(task_id, seed=seed)
        return {"steps": [{"thought": step.thought, "action": step.action} for step in steps]}

    def _observation(self, request: Request) -> object:
        return self._store.get(query_integer(request, "id")).observation

    def _detail(self, request: Request) -> object:
        return {**_answer(self._store.get(query_integer(request, "id"))), "deleted": False}

    def _meta(self, request: Request) -> object:
        environment = self._reference
        return {
            "name": environment.name,
            "version": environment.version,
            "reward_range": list(environment.reward_range),
            "reward_kind": environment.reward_kind,
            "success": {"field": "reward", "at_least": environment.success_threshold},
            "max_steps": environment.default_max_steps,
            "capabilities": ["expert", "fork", "snapshot", "seed"],
            "splits": {split: environment.tasks(split) for split in environment.splits},
            "identity": environment.identity(),
        }

    def _first_task(self) -> str:
        return min(self._reference.catalogue.kept)

    def _task_at(self, body: Mapping[str, Any]) -> str:
        goals = self._reference.catalogue.book.goals
        index = integer(body, "data_idx")
        if not 0 <= index < len(goals):
            raise RequestError(404, {"error": f"data_idx {index} is not in 0..{len(goals) - 1}"})
        return goals[index]

    def _known_task(self, task_id: str) -> str:
        if task_id not in self._reference.catalogue.kept:
            message = f"no task {task_id!r} with this server's options"
            raise RequestError(404, {"error": message})
        return task_id


def _with_body(handle: Callable[[dict[str, Any]], object]) -> _Handler:
    async def produce(request: Request) -> object:
        return handle(await read_body(request))

    return _replying(produce)


def _plain(handle: Callable[[Request], object]) -> _Handler:
    async def produce(request: Request) -> object:
        return handle(request)

    return _replying(produce)


def _replying(produce: Callable[[Request], Awaitable[object]]) -> _Handler:
    async def endpoint(request: Request) -> Response:
        try:
            return JsonReply(await produce(request))
        except RequestError as error:
            return JsonReply(error.payload, error.status)
        except UnknownSessionError as error:
            # AgentGym answers 200 here; its clients look for the key, not at the status.
            return JsonReply({"error": error.message})
        except TooManySessionsError as error:
            return JsonReply({"error": str(error)}, 503)

    return endpoint


def _answer(session: Session) -> dict[str, Any]:
    return {
        "observation": session.observation,
        "reward": number(session.reward),
        "done": session.done,
    }


def _opening(session: Session) -> dict[str, Any]:
    return {"id": session.number, **_answer(session)}
