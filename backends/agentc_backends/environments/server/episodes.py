"""What can be asked of a server's episodes, whatever protocol asks: `application.py` answers
AgentGym's over HTTP, `openenv.py` OpenEnv's over WebSocket, and both work on the same sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from agentc_backends.environments.server.environment import (
    Dialect,
    Environment,
    Expert,
    Privileged,
    description,
)
from agentc_backends.environments.server.requests import (
    UNCOUNTED,
    Reply,
    RequestError,
    Workers,
    invalid,
)
from agentc_backends.environments.server.sessions import (
    EnvironmentSession,
    Holder,
    SessionStore,
    UnknownSessionError,
)

_T = TypeVar("_T")
PROTOCOL = ("lease", "seq", "steps")
"""What `/meta` says of the protocol: words that clients look for before they use these."""


class Episodes:
    """The operations; a refusal is a RequestError, and so is a lack of room (BusyError)."""

    def __init__(
        self,
        store: SessionStore,
        reference: Environment,
        workers: Workers,
        *,
        privileged: bool = False,
    ) -> None:
        self.store = store
        self.privileged = privileged
        # Never reset or stepped: answers what does not depend on a session.
        self.reference = reference
        self._workers = workers
        self._endings: set[asyncio.Future[None]] = set()

    async def create(
        self, holder: Holder | None = None, spoken: Dialect | None = None
    ) -> tuple[EnvironmentSession, Reply | None]:
        """A new session, and its first answer where the environment starts a task by itself."""
        session = self.store.create(holder, spoken=spoken)
        if not self.reference.resets_on_create:
            return session, None
        first = min(task for split in self.reference.splits for task in self.reference.tasks(split))
        return session, await self.reset(session, first, 0)

    async def reset(
        self, session: EnvironmentSession, task_id: str, seed: int, seq: int | None = UNCOUNTED
    ) -> Reply:
        known = self.require_task(task_id)

        def act() -> Reply:
            session.reset(known, seed)
            return session.opening()

        asked = ("reset", task_id, seed)
        return await self._run(session, lambda: session.sequence.carry_out(seq, asked, act))

    async def step(
        self, session: EnvironmentSession, action: str, seq: int | None = UNCOUNTED
    ) -> Reply:
        def act() -> Reply:
            session.step(action)
            return session.answer()

        asked = ("step", action)
        return await self._run(session, lambda: session.sequence.carry_out(seq, asked, act))

    async def close(self, session: EnvironmentSession) -> None:
        """End a session that was taken out of the store: never refused for lack of room. A call
        of it that hangs keeps the caller waiting for a while, and then it ends by itself."""
        if not self.reference.blocking:
            session.close()
            return
        ending = asyncio.ensure_future(self._close(session))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        await asyncio.wait({ending}, timeout=self._workers.patience_s)
        if ending.done():
            ending.result()

    async def _close(self, session: EnvironmentSession) -> None:
        async with self._workers.turn(session.turns, refuse=False):
            if not session.closed:
                await self._workers.run(session.close, refuse=False)

    async def fork(self, source: EnvironmentSession) -> Reply:
        self.demand("fork")
        snapshot = await self._run(source, source.snapshot)
        fork = self.store.create(client=source.client, spoken=source.spoken)
        return await self._restored_or_closed(fork, snapshot)

    async def snapshot(self, session: EnvironmentSession) -> Mapping[str, Any]:
        self.demand("snapshot")
        return await self._run(session, session.snapshot)

    async def restore(
        self, session: EnvironmentSession, snapshot: Mapping[str, Any], seq: int | None = UNCOUNTED
    ) -> Reply:
        def act() -> Reply:
            try:
                session.restore(snapshot)
            except ValueError as error:
                raise invalid("snapshot", ("body", "snapshot"), str(error), None) from error
            return session.opening()

        asked = ("restore", snapshot)
        return await self._run(session, lambda: session.sequence.carry_out(seq, asked, act))

    async def restore_new(self, snapshot: Mapping[str, Any], holder: Holder | None) -> Reply:
        return await self._restored_or_closed(self.store.create(holder), snapshot)

    async def expert(self, task_id: str, seed: int) -> list[dict[str, str]]:
        self.demand("expert")
        known, expert = self.require_task(task_id), cast(Expert, self.reference)
        steps = await self._apart(lambda: expert.expert_steps(known, seed=seed))
        return [{"thought": step.thought, "action": step.action} for step in steps]

    async def hidden(self, task_ids: Sequence[str]) -> list[dict[str, str]]:
        """What no agent may see of these tasks; only for a server that was started to tell it."""
        if not self.privileged:
            message = "this server was started without --privileged: what it hides stays hidden"
            raise RequestError(403, {"error": message})
        self.demand("privileged")
        known, told = [*map(self.require_task, task_ids)], cast(Privileged, self.reference)
        texts = await self._apart(lambda: [(task, told.hidden_text(task)) for task in known])
        return [{"task_id": task, "text": each.text, "media": each.media} for task, each in texts]

    async def query(self, session: EnvironmentSession, ask: Callable[[Any], _T]) -> _T:
        """Something that an environment's dialect asks of it."""
        return await self._run(session, lambda: ask(session.environment))

    def meta(self) -> dict[str, Any]:
        """The environment's account of itself, and what this protocol can do for it."""
        return {**description(self.reference), "protocol": list(PROTOCOL)}

    def require_task(self, task_id: str) -> str:
        if not self.reference.has_task(task_id):
            message = f"no task {task_id!r} with this server's options"
            raise RequestError(404, {"error": message})
        return task_id

    def demand(self, capability: str) -> None:
        if capability not in self.reference.capabilities:
            message = f"{self.reference.title} has no capability {capability!r}"
            raise RequestError(501, {"error": message})

    async def _restored_or_closed(
        self, session: EnvironmentSession, snapshot: Mapping[str, Any]
    ) -> Reply:
        """A new session's first state; one that cannot be had leaves no session."""
        try:
            return await self.restore(session, snapshot)
        except BaseException:
            if self.store.close(session.number) is not None:
                session.close()
            raise

    async def _run(self, session: EnvironmentSession, call: Callable[[], _T]) -> _T:
        """A call on a session's environment: at once where it is quick, with no await between
        looking the session up and using it; else in a thread, after those before it."""
        if not self.reference.blocking:
            return call()

        def check() -> None:
            if session.closed or self.store.is_abandoned(session):
                raise UnknownSessionError(session.number)

        with self._workers.place():
            async with self._workers.turn(session.turns):
                return await self._workers.run(call, check)

    async def _apart(self, call: Callable[[], _T]) -> _T:
        """A call that concerns no session."""
        if not self.reference.blocking:
            return call()
        with self._workers.place():
            return await self._workers.run(call)
