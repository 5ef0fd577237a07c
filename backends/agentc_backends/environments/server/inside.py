"""An environment in the process of whoever plays it: the calls of `client.EnvironmentClient`,
without a server.

The same sessions answer as over HTTP, with the same values (JSON in between) and the same
exceptions. For environments that are not `blocking`: a call holds up the event loop.
`agents/common/connect.py` chooses between this and HTTP.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from agentc_backends.clients.environment import StepResult, step_result
from agentc_backends.clients.errors import (
    BadRequestError,
    EnvironmentServerError,
    InfrastructureError,
    ServiceError,
)
from agentc_backends.environments.server.environment import (
    EnvironmentFailure,
    EpisodeError,
    Expert,
    description,
)
from agentc_backends.environments.server.program import NotInsideError, Opener
from agentc_backends.environments.server.sessions import EnvironmentSession


class InsideEnvironment:
    """Episodes by their numbers. Every method raises what `EnvironmentClient`'s does."""

    def __init__(self, open_environment: Opener) -> None:
        """Raises NotInsideError."""
        self._open = open_environment
        try:
            self._reference = open_environment()
        except (OSError, ValueError, RuntimeError, ImportError) as error:
            raise NotInsideError(str(error)) from error
        if self._reference.blocking:
            raise NotInsideError(
                f"calls of {self._reference.title} wait for something: it needs its server"
            )
        self._sessions: dict[int, EnvironmentSession] = {}
        self._next = 0

    async def meta(self) -> dict[str, Any]:
        return cast("dict[str, Any]", _through_json(description(self._reference)))

    async def create(self) -> int:
        return self._added().number

    async def reset(self, session: int, task_id: str, seed: int = 0) -> StepResult:
        found = self._get("/reset", session)
        self._demand_task("/reset", task_id)
        with _answering("/reset"):
            found.reset(task_id, seed)
        return _result(found)

    async def step(self, session: int, action: str) -> StepResult:
        found = self._get("/step", session)
        with _answering("/step"):
            found.step(action)
        return _result(found)

    async def close(self, session: int) -> None:
        found = self._sessions.pop(session, None)
        if found is not None:
            found.close()

    async def close_connections(self) -> None:
        """End every session."""
        while self._sessions:
            await self.close(next(iter(self._sessions)))

    async def fork(self, session: int) -> int:
        self._demand("/fork", "fork")
        found = self._get("/fork", session)
        with _answering("/fork"):
            state = found.snapshot()
        return self._restored("/fork", state, self._added(), is_new=True)

    async def snapshot(self, session: int) -> dict[str, Any]:
        self._demand("/snapshot", "snapshot")
        found = self._get("/snapshot", session)
        with _answering("/snapshot"):
            return cast("dict[str, Any]", _through_json(found.snapshot()))

    async def restore(self, snapshot: Mapping[str, Any], session: int | None = None) -> int:
        self._demand("/restore", "snapshot")
        found = self._added() if session is None else self._get("/restore", session)
        return self._restored("/restore", snapshot, found, is_new=session is None)

    async def expert(self, task_id: str, seed: int = 0) -> list[dict[str, str]]:
        self._demand("/expert", "expert")
        self._demand_task("/expert", task_id)
        with _answering("/expert"):
            steps = cast(Expert, self._reference).expert_steps(task_id, seed=seed)
            return [{"thought": step.thought, "action": step.action} for step in steps]

    async def hidden(self, task_ids: Sequence[str]) -> list[dict[str, str]]:
        """Refused: whoever opens an environment in its own process plays it."""
        message = f"/privileged: {self._reference.title} shows no player what it hides"
        raise BadRequestError(message, status=403)

    def _added(self) -> EnvironmentSession:
        with _answering("/create"):
            session = EnvironmentSession(self._next, self._open())
        self._next += 1
        self._sessions[session.number] = session
        return session

    def _get(self, path: str, number: int) -> EnvironmentSession:
        session = self._sessions.get(number)
        if session is None:
            raise EnvironmentServerError(f"{path}: The id {number} is not valid.")
        return session

    def _restored(
        self, path: str, snapshot: Mapping[str, Any], session: EnvironmentSession, *, is_new: bool
    ) -> int:
        try:
            with _answering(path):
                session.restore(cast("dict[str, Any]", _through_json(dict(snapshot))))
        except ServiceError:
            if is_new:
                del self._sessions[session.number]
                session.close()
            raise
        return session.number

    def _demand(self, path: str, capability: str) -> None:
        if capability not in self._reference.capabilities:
            title = self._reference.title
            message = f"{path}: {title} has no capability {capability!r}"
            raise BadRequestError(message, status=501)

    def _demand_task(self, path: str, task_id: str) -> None:
        if not self._reference.has_task(task_id):
            message = f"{path}: no task {task_id!r} with this environment's options"
            raise BadRequestError(message, status=404)


@contextmanager
def _answering(path: str) -> Iterator[None]:
    """The environment's exceptions as those of a client of its server."""
    try:
        yield
    except (EpisodeError, EnvironmentFailure) as error:
        raise EnvironmentServerError(f"{path}: {error}") from error
    except ValueError as error:
        if path != "/restore":
            raise _broken(path, error) from error
        raise BadRequestError(f"{path}: {error}", status=422) from error
    except Exception as error:
        raise _broken(path, error) from error


def _broken(path: str, error: Exception) -> InfrastructureError:
    """A bug of the environment: a server would answer 500 and log it."""
    traceback.print_exception(error)
    return InfrastructureError(f"{path}: the environment fails: {type(error).__name__}: {error}")


def _result(session: EnvironmentSession) -> StepResult:
    # What it reports, and no more of its `info`, as an answer over HTTP would hold.
    told = cast("dict[str, Any]", _through_json(session.reported()))
    return step_result(session.observation, session.reward, session.done, told)


def _through_json(value: object) -> object:
    """As it would arrive: lists for tuples, words for keys."""
    return json.loads(json.dumps(value, allow_nan=False))
