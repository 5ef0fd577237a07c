"""Talks to one server of the family: sessions that are used again, and calls that fail plainly.

Sessions go back to a pool instead of being closed: some servers cannot close, some start a JVM
for each. Used from many threads. Neighbours: `exchange.py` (bodies), `environment.py`.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from agentc_backends.environments.agentgym.dialect import UpstreamDialect
from agentc_backends.environments.agentgym.exchange import (
    HttpReply,
    NoAnswerError,
    Request,
    UpstreamError,
    UpstreamTurn,
    close_request,
    create_request,
    observe_request,
    read_created,
    read_observation,
    read_opening,
    read_step,
    reset_request,
    step_request,
)
from agentc_backends.http_library import httpx2

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
