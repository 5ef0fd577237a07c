"""EnvironmentClient: episodes on servers that speak AgentGym's protocol (contracts.md, section 6).

AgentGym reports errors as `{"error": ...}` in a reply of status 200; here they are exceptions.
Neighbours: `transport.py`, `errors.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from agentc_backends.client.errors import EnvironmentServerError, InfrastructureError
from agentc_backends.client.limits import RateLimits
from agentc_backends.client.retry import RetryPolicy
from agentc_backends.client.transport import Timeouts, Transport


@dataclass(frozen=True, slots=True)
class StepResult:
    """What the agent sees after a reset or an action."""

    observation: str
    reward: float
    done: bool


class EnvironmentClient:
    """An asynchronous client of one environment server; sessions are its integer ids.

    Every method raises InfrastructureError, BadRequestError or EnvironmentServerError. Actions
    change state, so `step` is never sent twice: when its fate is unknown it raises
    InfrastructureError and the episode is void.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        limits: RateLimits | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self._transport = Transport(
            [url],
            token,
            retry=retry or RetryPolicy(),
            limits=limits or RateLimits(),
            timeouts=timeouts or Timeouts(read_s=120.0),
        )

    async def __aenter__(self) -> EnvironmentClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close_connections()

    async def close_connections(self) -> None:
        await self._transport.close()

    async def meta(self) -> dict[str, Any]:
        """Declared facts: name, version, reward_range, splits, identity, ..."""
        return _object("/meta", await self._get("/meta"))

    async def create(self) -> int:
        """A new session. A create whose reply was lost leaves a session behind, which the server
        drops when idle; so it may be sent again."""
        answer = await self._post("/create", {})
        return int(answer) if isinstance(answer, int) else _session("/create", answer)

    async def reset(self, session: int, task_id: str, seed: int = 0) -> StepResult:
        """Put a session at the start of a task; may be repeated."""
        body = {"id": session, "task_id": task_id, "seed": seed}
        return _result("/reset", await self._post("/reset", body))

    async def step(self, session: int, action: str) -> StepResult:
        """Act. Sent again only when it surely never reached the server."""
        body = {"id": session, "action": action}
        return _result("/step", await self._post("/step", body, resend=False))

    async def observation(self, session: int) -> str:
        """What the session shows now."""
        return str(await self._get("/observation", {"id": str(session)}))

    async def detail(self, session: int) -> dict[str, Any]:
        return _object("/detail", await self._get("/detail", {"id": str(session)}))

    async def close(self, session: int) -> None:
        """End a session; closing twice is no error here."""
        try:
            await self._post("/close", {"id": session})
        except EnvironmentServerError:
            # The first of two tries may have closed it.
            return

    async def fork(self, session: int) -> int:
        """A new session in the same state."""
        return _session("/fork", await self._post("/fork", {"id": session}))

    async def snapshot(self, session: int) -> dict[str, Any]:
        answer = _object("/snapshot", await self._post("/snapshot", {"id": session}))
        return _object("/snapshot", answer.get("snapshot"))

    async def restore(self, snapshot: Mapping[str, Any], session: int | None = None) -> int:
        """Put a session (a new one when None) into a saved state."""
        body: dict[str, Any] = {"snapshot": dict(snapshot)}
        if session is not None:
            body["id"] = session
        return _session("/restore", await self._post("/restore", body))

    async def expert(self, task_id: str, seed: int = 0) -> list[dict[str, str]]:
        """The expert's steps for a task: [{thought, action}]."""
        body = {"task_id": task_id, "seed": seed}
        answer = _object("/expert", await self._post("/expert", body))
        return [dict(step) for step in answer["steps"]]

    async def _get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        return _checked(path, await self._transport.call("GET", path, query=query))

    async def _post(self, path: str, body: Mapping[str, Any], *, resend: bool = True) -> Any:
        return _checked(path, await self._transport.call("POST", path, body, resend=resend))


def _checked(path: str, answer: Any) -> Any:
    if isinstance(answer, dict) and "error" in answer:
        raise EnvironmentServerError(f"{path}: {answer['error']}")
    return answer


def _object(path: str, answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise InfrastructureError(f"{path}: expected an object, got {str(answer)[:200]}")
    return answer


def _session(path: str, answer: Any) -> int:
    found = _object(path, answer).get("id")
    if not isinstance(found, int):
        raise InfrastructureError(f"{path}: a reply without a session id: {str(answer)[:200]}")
    return found


def _result(path: str, answer: Any) -> StepResult:
    found = _object(path, answer)
    try:
        return StepResult(str(found["observation"]), float(found["reward"]), bool(found["done"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InfrastructureError(f"{path}: not a step's result: {str(found)[:200]}") from error
