"""Environments over HTTP: AgentGym's protocol, and what tree search and rollouts need beyond it.

Replies of AgentGym's own routes have its shapes, quirks included (errors in a 200).
`openenv.py` adds its routes to these; `process.py` runs the application.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from agentc_backends.environments.server.environment import (
    Environment,
    EnvironmentFailure,
    EpisodeError,
    dialect_of,
)
from agentc_backends.environments.server.episodes import Episodes
from agentc_backends.environments.server.openenv import openenv_routes
from agentc_backends.environments.server.requests import UNCOUNTED, RequestError, Workers, invalid
from agentc_backends.environments.server.sessions import (
    MOST_LEASE_SECONDS,
    EnvironmentSession,
    Holder,
    SessionStore,
    UnknownSessionError,
)
from agentc_backends.environments.server.wire import (
    JsonReply,
    TokenGate,
    integer,
    items,
    mapping,
    name,
    query_integer,
    read_body,
    seconds,
    text,
)

Body = dict[str, Any]
DEFAULT_MAX_SESSIONS = 4096
DEFAULT_IDLE_TIMEOUT = 3600.0
DEFAULT_THREADS = 64
DEFAULT_WAITING = 1024
_SWEEP_SECONDS = 1.0
_MOST_STEPS = 4096


def create_app(
    open_environment: Callable[[], Environment],
    *,
    token: str | None = None,
    max_sessions: int = DEFAULT_MAX_SESSIONS,
    idle_timeout: float = DEFAULT_IDLE_TIMEOUT,
    threads: int = DEFAULT_THREADS,
    waiting: int = DEFAULT_WAITING,
    privileged: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> ASGIApp:
    """The ASGI application; `open_environment` gives each session an environment of its own,
    `threads` bounds the calls of blocking environments that run at a time, and `waiting` those
    that wait for them; with `privileged` it answers /privileged, which is 403 otherwise."""
    store = SessionStore(
        open_environment, clock, max_sessions=max_sessions, idle_timeout=idle_timeout
    )
    workers = Workers(threads, waiting)
    episodes = Episodes(store, open_environment(), workers, privileged=privileged)
    app = Starlette(
        routes=[*_Handlers(episodes).routes(), *openenv_routes(episodes)],
        lifespan=lambda _: _swept(store),
    )
    return app if token is None else TokenGate(app, token)


@asynccontextmanager
async def _swept(store: SessionStore) -> AsyncIterator[None]:
    """Expired sessions end though nobody asks for anything: what they hold may be dear."""

    async def sweep() -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                store.sweep()
            except Exception:
                # An environment that cannot be closed is no reason to keep the others.
                traceback.print_exc()

    sweeper = asyncio.create_task(sweep())
    yield
    sweeper.cancel()


class _Handlers:
    """One method for each route."""

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes
        self._store = episodes.store
        self._title = episodes.reference.title
        self._dialect = dialect_of(episodes.reference)

    def routes(self) -> list[BaseRoute]:
        posts: dict[str, Callable[[Body], Awaitable[object]]] = {
            "/reset": self._reset,
            "/step": self._step,
            "/steps": self._steps,
            "/close": self._close,
            "/fork": self._fork,
            "/snapshot": self._snapshot,
            "/restore": self._restore,
            "/expert": self._expert,
            "/privileged": self._privileged,
            "/renew": self._renew,
            "/leave": self._leave,
        }
        gets: dict[str, Callable[[Request], Awaitable[object]]] = {
            "/": _saying(lambda: f"This is environment {self._title}."),
            # OpenEnv's word for it.
            "/health": _saying(lambda: {"status": "healthy"}),
            "/meta": _saying(self._episodes.meta),
            "/sessions": _saying(self._store.census),
            "/observation": self._observation,
            "/detail": self._detail,
        }
        for path, ask in self._dialect.queries.items():
            gets[path] = partial(self._query, ask)
        return [
            Route("/create", _replying(self._create), methods=["POST"]),
            *(
                Route(p, _replying(_with_body(handle)), methods=["POST"])
                for p, handle in posts.items()
            ),
            *(Route(path, _replying(handle), methods=["GET"]) for path, handle in gets.items()),
        ]

    async def _create(self, request: Request) -> object:
        body = await read_body(request, optional=self._dialect.bodiless_create)
        spoken = self._dialect if body is None else None
        session, opening = await self._episodes.create(_holder(body or {}), spoken)
        if opening is not None:
            return opening
        return session.identification() if spoken is None else spoken.created(session.number)

    async def _reset(self, body: Body) -> object:
        number, seed, seq = self._number(body), integer(body, "seed", 0), _seq(body)
        task_id = text(body, "task_id") if "task_id" in body else self._task_at(body)
        session = self._session(number, body)
        answer = await self._episodes.reset(session, task_id, seed, seq)
        return answer if session.spoken is None else session.spoken.opened(answer)

    async def _step(self, body: Body) -> object:
        number, action, seq = self._number(body), text(body, "action"), _seq(body)
        session = self._session(number, body)
        answer = await self._episodes.step(session, action, seq)
        return answer if session.spoken is None else session.spoken.stepped(answer)

    async def _steps(self, body: Body) -> object:
        """Steps of many sessions; each is answered as if it had come alone, with a `status` where
        that is not 200. Those of one session are carried out in the order given."""
        client = name(body, "client")
        each = [
            self._one_of_many(place, step, client)
            for place, step in enumerate(items(body, "steps", _MOST_STEPS))
        ]
        return {"results": await asyncio.gather(*each)}

    async def _one_of_many(self, place: int, step: object, client: str | None) -> object:
        async def produce() -> object:
            if not isinstance(step, dict):
                where = ("body", "steps", str(place))
                raise invalid("dict_type", where, "Input should be a JSON object", step)
            return await self._step(step if client is None else {**step, "client": client})

        content, status, _ = await _reply_parts(produce())
        return content if status == 200 else {**_object(content), "status": status}

    async def _close(self, body: Body) -> object:
        session = self._store.close(self._number(body), name(body, "client"))
        if session is None:
            return False
        await self._episodes.close(session)
        return True

    async def _fork(self, body: Body) -> object:
        self._episodes.demand("fork")
        return await self._episodes.fork(self._session(self._number(body), body))

    async def _snapshot(self, body: Body) -> object:
        self._episodes.demand("snapshot")
        session = self._session(self._number(body), body)
        return {"snapshot": await self._episodes.snapshot(session)}

    async def _restore(self, body: Body) -> object:
        """Into the session given, or into a new one."""
        self._episodes.demand("snapshot")
        snapshot = mapping(body, "snapshot")
        if "id" not in body:
            return await self._episodes.restore_new(snapshot, _holder(body))
        number, seq = self._number(body), _seq(body)
        return await self._episodes.restore(self._session(number, body), snapshot, seq)

    async def _expert(self, body: Body) -> object:
        self._episodes.demand("expert")
        task_id, seed = text(body, "task_id"), integer(body, "seed", 0)
        return {"steps": await self._episodes.expert(task_id, seed)}

    async def _privileged(self, body: Body) -> object:
        asked = items(body, "task_ids", _MOST_STEPS)
        for place, task_id in enumerate(asked):
            if not isinstance(task_id, str):
                where = ("body", "task_ids", str(place))
                raise invalid("string_type", where, "Input should be a valid string", task_id)
        return {"texts": await self._episodes.hidden(asked)}

    async def _renew(self, body: Body) -> object:
        """Says that a client is alive, and how long to wait for it from now."""
        text(body, "client")
        holder = _holder(body)
        assert holder is not None
        return {"sessions": self._store.renew(holder)}

    async def _leave(self, body: Body) -> object:
        """Ends a client's lease, and every session that lives by it."""
        text(body, "client")
        left = self._store.leave(name(body, "client") or "")
        await asyncio.gather(*(self._episodes.close(session) for session in left))
        return {"sessions": len(left)}

    async def _observation(self, request: Request) -> object:
        return self._queried_session(request).observation

    async def _detail(self, request: Request) -> object:
        return {**self._queried_session(request).answer(), "deleted": False}

    async def _query(self, ask: Callable[[Any], object], request: Request) -> object:
        return await self._episodes.query(self._queried_session(request), ask)

    def _session(self, number: int, body: Mapping[str, Any]) -> EnvironmentSession:
        return self._store.get(number, name(body, "client"))

    def _queried_session(self, request: Request) -> EnvironmentSession:
        own = self._dialect.session_field
        field = own if own in request.query_params else "id"
        client = request.query_params.get("client")
        return self._store.get(query_integer(request, field), client)

    def _number(self, body: Mapping[str, Any]) -> int:
        own = self._dialect.session_field
        return integer(body, own if own in body else "id")

    def _task_at(self, body: Mapping[str, Any]) -> str:
        tasks = self._episodes.reference.numbered_tasks()
        own = self._dialect.task_field
        field = own if own in body else "data_idx"
        index = integer(body, field)
        if not 0 <= index < len(tasks):
            raise RequestError(404, {"error": f"{field} {index} is not in 0..{len(tasks) - 1}"})
        return tasks[index]


def _holder(body: Mapping[str, Any]) -> Holder | None:
    client = name(body, "client")
    if client is None:
        return None
    return Holder(client, seconds(body, "lease_s", MOST_LEASE_SECONDS))


def _seq(body: Mapping[str, Any]) -> int | None:
    if body.get("seq") is None:
        return UNCOUNTED
    number = integer(body, "seq")
    if number < 0:
        raise invalid("seq", ("body", "seq"), "Input should be 0 or more", number)
    return number


def _saying(content: Callable[[], object]) -> Callable[[Request], Awaitable[object]]:
    async def produce(request: Request) -> object:
        return content()

    return produce


def _with_body(
    handle: Callable[[Body], Awaitable[object]],
) -> Callable[[Request], Awaitable[object]]:
    async def produce(request: Request) -> object:
        body = await read_body(request)
        assert body is not None
        return await handle(body)

    return produce


def _replying(
    produce: Callable[[Request], Awaitable[object]],
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return JsonReply(*await _reply_parts(produce(request)))

    return endpoint


async def _reply_parts(production: Awaitable[object]) -> tuple[object, int, Mapping[str, str]]:
    """What to answer: content, status, headers."""
    try:
        return await production, 200, {}
    except RequestError as error:
        return error.payload, error.status, error.headers
    except UnknownSessionError as error:
        # AgentGym answers 200 here; its clients look for the key, not at the status.
        return {"error": error.message}, 200, {}
    except (EpisodeError, EnvironmentFailure) as error:
        return {"error": str(error)}, 200, {}


def _object(content: object) -> Mapping[str, Any]:
    assert isinstance(content, Mapping)
    return content
