"""The client of one AgentGym server: bodies and replies of its dialect, and a pool of its sessions.

Sessions go back to a pool instead of being closed: some servers cannot close, some start a JVM for
each. Used from many threads. The family reports errors in four ways: `{"error": ...}` with status
200, statuses of 400 and above, an observation that reports a failure, and replies that lack fields.
Here each is an UpstreamError."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from agentc_backends.environments.agentgym.dialects import UpstreamDialect


class UpstreamError(Exception):
    """The server refused a call, failed, or answered what the dialect does not allow."""


class NoAnswerError(UpstreamError):
    """Nothing came back: the server is gone, or still at work on the call."""


class ErrorReplyError(UpstreamError):
    """The server answered `{"error": text}` with status 200. `text` is what it says."""

    def __init__(self, route: str, text: str) -> None:
        super().__init__(f"{route}: the server answers an error: {text}")
        self.text = text


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; `body` None sends none."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What came back: the status, and the decoded JSON (text where it was none)."""

    status: int
    content: Any


@dataclass(frozen=True, slots=True)
class UpstreamTurn:
    """An observation with the step's reward in the server's own units."""

    observation: str
    reward: float
    done: bool


def create_request(dialect: UpstreamDialect) -> Request:
    return Request("POST", f"{dialect.prefix}/create", dialect.create_body)


def reset_request(dialect: UpstreamDialect, session: int, task: int) -> Request:
    body = {dialect.session_field: session, dialect.task_field: task, **dialect.reset_fields}
    return Request("POST", f"{dialect.prefix}/reset", body)


def step_request(dialect: UpstreamDialect, session: int, action: str) -> Request:
    body = {dialect.session_field: session, "action": worded(dialect, action)}
    return Request("POST", f"{dialect.prefix}/step", body)


def observe_request(dialect: UpstreamDialect, session: int) -> Request:
    query: dict[str, str] = {dialect.session_field: str(session)}
    return Request("GET", f"{dialect.prefix}/observation", query=query)


def close_request(dialect: UpstreamDialect, session: int) -> Request:
    return Request("POST", f"{dialect.prefix}/close", {dialect.session_field: session})


def worded(dialect: UpstreamDialect, action: str) -> str:
    """An action as the server wants it. Rollouts send bare actions; a mark or a fence that an
    agent has written itself is not doubled."""
    if dialect.action_form == "marked" and "Action:" not in action:
        return f"Action: {action}"
    if dialect.action_form == "fenced" and "```" not in action:
        return f"```{action}```"
    return action


def read_created(dialect: UpstreamDialect, reply: HttpReply) -> int:
    """The new session's number: the reply itself, or its field."""
    content = _content("/create", reply)
    if isinstance(content, Mapping):
        content = content.get(dialect.session_field, content.get("id"))
    if isinstance(content, bool) or not isinstance(content, int):
        raise _unexpected(
            "/create", f"a number, or an object with `{dialect.session_field}`", reply
        )
    return content


def read_opening(dialect: UpstreamDialect, reply: HttpReply) -> str | None:
    """The first text of a task; None when it has to be asked for with GET /observation."""
    content = _content("/reset", reply)
    match dialect.opening:
        case "observe":
            return None
        case "text":
            found = _text("/reset", content, reply)
        case "first":
            first = content[0] if isinstance(content, list) and content else None
            found = _text("/reset", first, reply)
        case _:
            if not isinstance(content, Mapping):
                raise _unexpected("/reset", "an object", reply)
            texts = [_field("/reset", content, name, reply) for name in dialect.opening_fields]
            found = "\n".join(texts) + _legal(dialect, content)
    return _no_failure("/reset", dialect, found)


def read_observation(dialect: UpstreamDialect, reply: HttpReply) -> str:
    """The reply to GET /observation: a text, or an object that holds it."""
    content = _content("/observation", reply)
    if isinstance(content, Mapping):
        content = content.get("observation", content.get(dialect.step_field))
    return _no_failure("/observation", dialect, _text("/observation", content, reply))


def read_step(dialect: UpstreamDialect, reply: HttpReply) -> UpstreamTurn:
    content = _content("/step", reply)
    if not isinstance(content, Mapping):
        raise _unexpected("/step", "an object", reply)
    observation = _field("/step", content, dialect.step_field, reply) + _legal(dialect, content)
    reward = content.get(dialect.reward_field)
    if not isinstance(reward, (int, float)) or not math.isfinite(reward):
        raise _unexpected("/step", f"a number in `{dialect.reward_field}`", reply)
    ends = [content.get(name) for name in dialect.done_fields]
    if not any(isinstance(end, bool) for end in ends):
        raise _unexpected("/step", f"true or false in `{dialect.done_fields[0]}`", reply)
    text = _no_failure("/step", dialect, observation)
    return UpstreamTurn(text, float(reward), any(end is True for end in ends))


def _content(route: str, reply: HttpReply) -> Any:
    content = reply.content
    if isinstance(content, Mapping) and content.get("error") is not None:
        # The released servers put str(exception) there: for a KeyError that is the key alone.
        text = str(content["error"])[:300]
        if reply.status == 200:
            raise ErrorReplyError(route, text)
    if reply.status != 200:
        raise UpstreamError(f"{route}: the server answers {reply.status}: {str(content)[:300]}")
    return content


def _field(route: str, content: Mapping[str, Any], name: str, reply: HttpReply) -> str:
    if name not in content:
        raise _unexpected(route, f"a text in `{name}`", reply)
    return _text(route, content[name], reply)


def _text(route: str, value: Any, reply: HttpReply) -> str:
    if not isinstance(value, str):
        raise _unexpected(route, "a text", reply)
    return value


def _legal(dialect: UpstreamDialect, content: Mapping[str, Any]) -> str:
    """The legal actions, worded as the family's own client words them."""
    if dialect.legal_actions is None:
        return ""
    listed = content.get(dialect.legal_actions)
    if not isinstance(listed, list):
        return ""
    return f"\nAVAILABLE ACTIONS: {','.join(str(action) for action in listed)}"


def _no_failure(route: str, dialect: UpstreamDialect, text: str) -> str:
    if text.strip() in dialect.failure_texts:
        raise UpstreamError(f"{route}: the server failed: {text.strip()}")
    return text


def _unexpected(route: str, expected: str, reply: HttpReply) -> UpstreamError:
    return UpstreamError(f"{route}: expected {expected}, got {str(reply.content)[:200]}")


_TRIES = 3


class Upstream:
    """The server at `url`, spoken to in one dialect.

    Every method raises UpstreamError. `most_sessions` bounds the sessions that are open there at
    a time, beside what the dialect says; who wants another waits up to `timeout_s`.
    """

    def __init__(
        self,
        url: str,
        dialect: UpstreamDialect,
        *,
        timeout_s: float = 300.0,
        most_sessions: int = 256,
    ) -> None:
        self.url = url.rstrip("/")
        self.dialect = dialect
        self._timeout_s = timeout_s
        self._client = httpx2.Client(
            base_url=self.url,
            timeout=httpx2.Timeout(timeout_s, connect=10.0),
            limits=httpx2.Limits(max_connections=most_sessions + 8),
            # What the machine routes abroad must not catch a server on this machine.
            trust_env=False,
        )
        limit = min(most_sessions, dialect.sessions or most_sessions)
        self._places = threading.Semaphore(limit)
        self._limit = limit
        self._idle: list[int] = []
        self._open: set[int] = set()
        self._lock = threading.Lock()

    def greeting(self) -> str:
        """What GET / says: a fixed text that names the kind of server."""
        reply = self._send(Request("GET", "/"), again=True)
        return str(reply.content)[:200]

    def acquire(self) -> int:
        """A session of its own for the caller: an idle one, else a new one."""
        if not self._places.acquire(timeout=self._timeout_s):
            raise UpstreamError(f"all {self._limit} sessions of {self.url} are in use")
        try:
            with self._lock:
                if self._idle:
                    return self._idle.pop()
            session = read_created(self.dialect, self._send(create_request(self.dialect)))
            with self._lock:
                if session in self._open:
                    raise UpstreamError(
                        f"/create: the server gave out session {session} twice, as it does when it "
                        "holds as many as it can; two episodes would share one world"
                    )
                self._open.add(session)
        except BaseException:
            self._places.release()
            raise
        return session

    def release(self, session: int, *, usable: bool = True, settled: bool = True) -> None:
        """Give a session back; one in an unknown state is closed where that can be done. A server
        of few sessions that cannot close gets it used again, for nothing else would free its place;
        unless it is not `settled`, still at work on a call: then the place is lost."""
        scarce = self.dialect.sessions is not None and not self.dialect.closes
        if scarce and not settled:
            return
        keep = usable or scarce
        with self._lock:
            if keep:
                self._idle.append(session)
            else:
                self._open.discard(session)
        if not keep:
            self._close(session)
        self._places.release()

    def reset(self, session: int, task: int) -> str:
        """Put a session at the start of a task; its first text."""
        reply = self._send(reset_request(self.dialect, session, task), again=True)
        first = read_opening(self.dialect, reply)
        if first is None:
            asked = self._send(observe_request(self.dialect, session), again=True)
            first = read_observation(self.dialect, asked)
        return first

    def step(self, session: int, action: str) -> UpstreamTurn:
        """Act once; never sent again, for actions change state."""
        return read_step(self.dialect, self._send(step_request(self.dialect, session, action)))

    def close(self) -> None:
        """Close the idle sessions where the server can, and the connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            self._close(session)
        self._client.close()

    def _close(self, session: int) -> None:
        if self.dialect.closes:
            try:
                # Whatever it answers: servers say false, an error or 500 of what is gone already.
                self._send(close_request(self.dialect, session))
            except UpstreamError:
                return

    def _send(self, request: Request, *, again: bool = False) -> HttpReply:
        for number in range(1, _TRIES + 1):
            try:
                answer = self._client.request(
                    request.method, request.path, params=request.query, **_body(request)
                )
            except httpx2.HTTPError as error:
                if number == _TRIES or not (again or isinstance(error, httpx2.ConnectError)):
                    what = f"{request.method} {request.path}"
                    reason = str(error) or type(error).__name__
                    raise NoAnswerError(f"{what}: no answer from {self.url}: {reason}") from error
                time.sleep(0.2 * number)
            else:
                return HttpReply(answer.status_code, _decoded(answer))
        raise AssertionError("unreachable")


def _body(request: Request) -> dict[str, Any]:
    return {} if request.body is None else {"json": dict(request.body)}


def _decoded(answer: httpx2.Response) -> Any:
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        return answer.text
