"""EnvironmentClient: episodes on servers that speak AgentGym's protocol (contracts.md, section 6);
EnvironmentCalls: its calls, which an environment in the same process answers too.

AgentGym reports errors as `{"error": ...}` in a reply of status 200; here they are exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from agentc_backends.clients.errors import (
    BadRequestError,
    EnvironmentServerError,
    InfrastructureError,
    ServiceError,
)
from agentc_backends.clients.request_policy import RateLimits, RetryPolicy
from agentc_backends.clients.sessions import ClientLease, SequenceNumbers
from agentc_backends.clients.transport import Timeouts, Transport

_OUT_OF_ORDER = 409
_BUSY = 503


@dataclass(frozen=True, slots=True)
class StepResult:
    """What the agent sees after a reset or an action. `step_limit`, after a reset: how many steps
    the environment allows in the episode, where it says so. `report`, after an action: what the
    environment says of the episode for its record, which the agent does not see."""

    observation: str
    reward: float
    done: bool
    step_limit: int | None = None
    report: Mapping[str, Any] | None = None


class EnvironmentClient:
    """An asynchronous client of one environment server; sessions are its integer ids.

    Every method raises InfrastructureError, BadRequestError or EnvironmentServerError. Where the
    server knows sequence numbers (its reply to /create says so), requests that act are numbered,
    so that one whose reply was lost is sent again and acts once. Elsewhere a `step` of unknown
    fate raises InfrastructureError, and the episode is void.

    There, too, the client holds a lease, which it renews while its event loop runs: a server ends
    the sessions of a client that it has not heard of for `lease_s` seconds.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        limits: RateLimits | None = None,
        timeouts: Timeouts | None = None,
        lease_s: float = 300.0,
        direct: bool = False,
    ) -> None:
        self._transport = Transport(
            [url],
            token,
            retry=retry or RetryPolicy(),
            limits=limits or RateLimits(),
            timeouts=timeouts or Timeouts(read_s=120.0),
            direct=direct,
        )
        # Of its own: all places of the other may be taken by calls that last longer than a lease.
        self._tenancy = Transport(
            [url],
            token,
            retry=retry or RetryPolicy(),
            limits=RateLimits(concurrency=1),
            timeouts=Timeouts(read_s=max(1.0, lease_s / 3)),
            direct=direct,
        )
        self._lease = ClientLease(lease_s)
        self._numbers = SequenceNumbers()

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
        """Sessions that are still open end with it, where the server knows leases."""
        await self._lease.end(self._hold)
        await self._transport.close()
        await self._tenancy.close()

    async def meta(self) -> dict[str, Any]:
        """Declared facts: name, version, reward_range, splits, identity, ..."""
        return _object("/meta", await self._get("/meta"))

    async def create(self) -> int:
        """A new session. A create whose reply was lost leaves a session behind, which ends with
        this client's lease, or when idle; so it may be sent again."""
        return self._register("/create", await self._post("/create", self._lease.lease_fields()))

    async def reset(self, session: int, task_id: str, seed: int = 0) -> StepResult:
        """Put a session at the start of a task; may be repeated."""
        body = {"task_id": task_id, "seed": seed}
        return _result("/reset", await self._act("/reset", session, body, starts_over=True))

    async def step(self, session: int, action: str) -> StepResult:
        """Act, once."""
        return _result("/step", await self._act("/step", session, {"action": action}))

    async def step_many(
        self, actions: Sequence[tuple[int, str]]
    ) -> list[StepResult | ServiceError]:
        """Act in several sessions by one request: (session, action) each, answered each on its
        own, in order. Only for servers whose `/meta` lists `steps` in `protocol`, and once for a
        session. Sessions whose steps cannot be numbered are stepped by requests of their own."""
        if len({session for session, _ in actions}) < len(actions):
            raise ValueError("one request steps a session once")
        numbers = {session: self._numbers.next(session) for session, _ in actions}
        steps: list[dict[str, Any]] = [
            {"id": session, "action": action, "seq": numbers[session]}
            for session, action in actions
            if numbers[session] is not None
        ]
        try:
            found: list[Any] = []
            if steps:
                body = {"steps": steps, **self._lease.client_fields()}
                found = _object("/steps", await self._post("/steps", body))["results"]
            answers = {step["id"]: one for step, one in zip(steps, found, strict=True)}
        except BaseException:
            for step in steps:
                self._numbers.lose(step["id"])
            raise
        results: list[StepResult | ServiceError] = []
        for session, action in actions:
            try:
                results.append(await self._one_of_many(session, action, answers.get(session)))
            except ServiceError as error:
                results.append(error)
        return results

    async def observation(self, session: int) -> str:
        """What the session shows now."""
        return str(await self._get("/observation", self._query(session)))

    async def detail(self, session: int) -> dict[str, Any]:
        return _object("/detail", await self._get("/detail", self._query(session)))

    async def close(self, session: int) -> None:
        """End a session; closing twice is no error here."""
        body = self._body(session)
        self._numbers.forget(session)
        try:
            await self._post("/close", body)
        except EnvironmentServerError:
            # The first of two tries may have closed it.
            return

    async def fork(self, session: int) -> int:
        """A new session in the same state."""
        return self._register("/fork", await self._post("/fork", self._body(session)))

    async def snapshot(self, session: int) -> dict[str, Any]:
        answer = _object("/snapshot", await self._post("/snapshot", self._body(session)))
        return _object("/snapshot", answer.get("snapshot"))

    async def restore(self, snapshot: Mapping[str, Any], session: int | None = None) -> int:
        """Put a session (a new one when None) into a saved state."""
        body: dict[str, Any] = {"snapshot": dict(snapshot)}
        if session is None:
            answer = await self._post("/restore", {**body, **self._lease.lease_fields()})
            return self._register("/restore", answer)
        return _session("/restore", await self._act("/restore", session, body, starts_over=True))

    async def expert(self, task_id: str, seed: int = 0) -> list[dict[str, str]]:
        """The expert's steps for a task: [{thought, action}]."""
        body = {"task_id": task_id, "seed": seed}
        answer = _object("/expert", await self._post("/expert", body))
        return [dict(step) for step in answer["steps"]]

    async def hidden(self, task_ids: Sequence[str]) -> list[dict[str, str]]:
        """What no agent may see of these tasks: [{task_id, text, media}]. Only of a server that
        was started to tell it; another one refuses (BadRequestError, 403). No message of an
        error has a word of what the server said."""
        body = {"task_ids": [*task_ids]}
        try:
            answer = await self._transport.call("POST", HIDDEN_TEXTS, body, private=True)
        except BadRequestError as error:
            raise hidden_text_refusal(error) from None
        return read_hidden_texts(answer, task_ids)

    async def _act(
        self, path: str, session: int, body: Mapping[str, Any], *, starts_over: bool = False
    ) -> Any:
        """A request that changes a session. One that starts the episode over may be sent twice
        without a number too."""
        number = self._numbers.next(session, starts_over=starts_over)
        counted = {} if number is None else {"seq": number}
        resend = starts_over or number is not None
        try:
            answer = await self._post(
                path, {**self._body(session), **body, **counted}, resend=resend
            )
        except BadRequestError as error:
            # Refused, so nothing was done. A number out of order means that somebody else acts.
            if error.status != _OUT_OF_ORDER:
                raise
            self._numbers.lose(session)
            raise InfrastructureError(str(error)) from error
        except BaseException:
            # A caller that gives up waiting, too, does not learn what came of it.
            self._numbers.lose(session)
            raise
        self._numbers.note(session, answer)
        return answer

    async def _one_of_many(self, session: int, action: str, answer: Any) -> StepResult:
        """`answer` None: the step was not sent yet."""
        status = _BUSY if answer is None else _object("/steps", answer).get("status", 200)
        if status == _BUSY:
            return await self.step(session, action)
        if status != 200:
            message = str(answer.get("error", answer.get("detail")))
            if status != _OUT_OF_ORDER:
                raise BadRequestError(f"/steps: {status} {message}", status=status)
            self._numbers.lose(session)
            raise InfrastructureError(f"/steps: {status} {message}")
        if "error" in answer:
            self._numbers.lose(session)
        result = _result("/steps", _checked("/steps", answer))
        self._numbers.note(session, answer)
        return result

    def _register(self, path: str, answer: Any) -> int:
        if isinstance(answer, int):
            return answer
        number = _session(path, answer)
        if self._numbers.begin(number, answer):
            self._lease.begin(self._hold)
        return number

    def _body(self, session: int) -> dict[str, Any]:
        return {"id": session, **(self._lease.client_fields() if session in self._numbers else {})}

    def _query(self, session: int) -> dict[str, str]:
        return {name: str(value) for name, value in self._body(session).items()}

    async def _get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        return _checked(path, await self._transport.call("GET", path, query=query))

    async def _post(self, path: str, body: Mapping[str, Any], *, resend: bool = True) -> Any:
        return _checked(path, await self._transport.call("POST", path, body, resend=resend))

    async def _hold(self, path: str, body: Mapping[str, Any]) -> Any:
        """A word about the lease."""
        return _checked(path, await self._tenancy.call("POST", path, body))


def step_result(
    observation: object, reward: Any, done: object, reported: Mapping[str, Any]
) -> StepResult:
    """A result from its parts and what came with them. Raises TypeError, ValueError."""
    limit, report = reported.get("step_limit"), reported.get("report")
    return StepResult(
        str(observation),
        float(reward),
        bool(done),
        limit if isinstance(limit, int) else None,
        report if isinstance(report, dict) else None,
    )


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
        return step_result(found["observation"], found["reward"], found["done"], found)
    except (KeyError, TypeError, ValueError) as error:
        raise InfrastructureError(f"{path}: not a step's result: {str(found)[:200]}") from error


class EnvironmentCalls(Protocol):
    """The calls of `EnvironmentClient` that episodes, searches and stages make."""

    async def meta(self) -> dict[str, Any]: ...

    async def create(self) -> int: ...

    async def reset(self, session: int, task_id: str, seed: int = 0) -> StepResult: ...

    async def step(self, session: int, action: str) -> StepResult: ...

    async def close(self, session: int) -> None: ...

    async def fork(self, session: int) -> int: ...

    async def snapshot(self, session: int) -> dict[str, Any]: ...

    async def restore(self, snapshot: Mapping[str, Any], session: int | None = None) -> int: ...

    async def expert(self, task_id: str, seed: int = 0) -> list[dict[str, str]]: ...

    async def hidden(self, task_ids: Sequence[str]) -> list[dict[str, str]]: ...

    async def close_connections(self) -> None: ...


HIDDEN_TEXTS = "/privileged"
_FIELDS = ("task_id", "text", "media")
_REFUSALS = {
    401: "the token is not the server's",
    403: "the server was started without --privileged: what it hides stays hidden",
    404: "a task is not of the environment, with these settings",
    501: "the environment has no hidden texts (the capability `privileged`)",
}
"""In our words: a server's own may quote what it was to tell."""


def hidden_text_refusal(error: BadRequestError) -> BadRequestError:
    """The refusal by its status."""
    meaning = _REFUSALS.get(error.status, "the server refuses")
    return BadRequestError(f"{HIDDEN_TEXTS}: {error.status} {meaning}", status=error.status)


def read_hidden_texts(answer: Any, task_ids: Sequence[str]) -> list[dict[str, str]]:
    """One text of each task asked for, in order. Raises EnvironmentServerError where the server
    reports an error of its own, InfrastructureError where the reply is none of the contract's."""
    if isinstance(answer, dict) and "error" in answer:
        raise EnvironmentServerError(
            f"{HIDDEN_TEXTS}: the environment reports an error of its own, which may quote what it "
            "hides and is kept back"
        )
    texts = answer.get("texts") if isinstance(answer, dict) else None
    if not isinstance(texts, list) or len(texts) != len(task_ids):
        raise InfrastructureError(
            f"{HIDDEN_TEXTS}: expected `texts`, one for each of {len(task_ids)} tasks"
        )
    return [_hidden_text(each, place) for place, each in enumerate(texts)]


def _hidden_text(each: Any, place: int) -> dict[str, str]:
    given = each if isinstance(each, dict) else {}
    found = {name: given[name] for name in _FIELDS if isinstance(given.get(name), str)}
    if len(found) < len(_FIELDS):
        raise InfrastructureError(
            f"{HIDDEN_TEXTS}: item {place} of `texts` lacks one of {', '.join(_FIELDS)}, as text"
        )
    return found
