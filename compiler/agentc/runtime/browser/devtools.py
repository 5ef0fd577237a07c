"""The DevTools protocol of Chromium, over a pair of pipes: one request at a time, and its events.

Standard library alone. Playwright does this as well, with a Node.js of 130 MB that starts for each
browser; here a dozen methods are called. Whatever comes from the browser is only read as JSON.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Callable
from typing import Any

_CHUNK = 1 << 20
_POLL_S = 0.25
Event = dict[str, Any]


class BrowserEndError(Exception):
    """The browser has closed its pipe: it ended or was killed."""


class LateReplyError(Exception):
    """No reply came within the time."""


class DevtoolsError(Exception):
    """The browser answered with an error."""


class Devtools:
    """One thread's. `watch` is called several times a second while something is waited for, and may
    raise; `on_event` is given what the browser tells between replies, and may `send`."""

    def __init__(
        self, orders: int, answers: int, watch: Callable[[], None], most_bytes: int = 256 << 20
    ) -> None:
        self._orders, self._answers, self._watch = orders, answers, watch
        self._open = [orders, answers]
        self._most = most_bytes
        os.set_blocking(orders, False)
        self._poll = select.poll()
        self._poll.register(answers, select.POLLIN)
        self._held: deque[bytes] = deque()
        self._messages: deque[Event] = deque()
        self._size = 0
        self._last = 0
        self.on_event: Callable[[Event], None] = lambda event: None

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        session: str | None = None,
        until: float,
    ) -> dict[str, Any]:
        """The result of a method, by the clock's time `until` (monotonic). Raises LateReplyError,
        BrowserEndError, DevtoolsError."""
        number = self.send(method, params, session=session, until=until)
        while True:
            message = self._next(until)
            if message.get("id") == number:
                if "error" in message:
                    raise DevtoolsError(f"{method}: {message['error'].get('message')}")
                result: dict[str, Any] = message["result"]
                return result
            if "method" in message:
                self.on_event(message)

    def send(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        session: str | None = None,
        until: float,
    ) -> int:
        """Asks, and leaves the reply; returns the request's number."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        left = memoryview(json.dumps(message).encode() + b"\0")
        while left:
            try:
                left = left[os.write(self._orders, left) :]
            except BlockingIOError:
                # It may itself be waiting until somebody reads what it says.
                self._wait(until, writing=True)
            except OSError:
                raise BrowserEndError from None
        return self._last

    def wait_for(self, happened: Callable[[], bool], until: float) -> None:
        """Hands events on until something has happened. Raises as `call` does."""
        while not happened():
            message = self._next(until)
            if "method" in message:
                self.on_event(message)

    def close(self) -> None:
        """Both pipes, once: afterwards their numbers are somebody else's."""
        while self._open:
            os.close(self._open.pop())

    def _next(self, until: float) -> Event:
        while not self._messages:
            self._wait(until)
        return self._messages.popleft()

    def _wait(self, until: float, writing: bool = False) -> None:
        """Until something was read, or might be written."""
        left = until - time.monotonic()
        if left <= 0:
            raise LateReplyError
        self._watch()
        self._poll.modify(self._answers, select.POLLIN)
        if writing:
            self._poll.register(self._orders, select.POLLOUT)
        try:
            ready = dict(self._poll.poll(int(min(left, _POLL_S) * 1000) + 1))
        finally:
            if writing:
                self._poll.unregister(self._orders)
        if self._answers in ready:
            self._read()

    def _read(self) -> None:
        try:
            chunk = os.read(self._answers, _CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            raise BrowserEndError
        self._size += len(chunk)
        if self._size > self._most:
            raise BrowserEndError
        *whole, rest = chunk.split(b"\0")
        for part in whole:
            self._held.append(part)
            self._messages.append(json.loads(b"".join(self._held)))
            self._held.clear()
            self._size = 0
        if rest:
            self._held.append(rest)
            self._size = sum(map(len, self._held))
