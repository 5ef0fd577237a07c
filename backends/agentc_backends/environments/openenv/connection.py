"""Speaks OpenEnv's WebSocket protocol: one connection is one episode on the server, and is closed.

A server that is full says so and is asked again: its places come free as episodes end. Steps are
never sent twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx2
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

MAX_MESSAGE_BYTES = 16 << 20
_FULL = "CAPACITY_REACHED"


class OpenEnvError(Exception):
    """The server is gone, or answers nothing that can be read."""


class OpenEnvReplyError(OpenEnvError):
    """The server answered an error; `code` is OpenEnv's word for what sort."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"the server answers {code}: {message}")
        self.code, self.message = code, message


class OpenEnvUpstream:
    """The server at `url`. Every method raises OpenEnvError."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self.url = url.rstrip("/")
        self._timeout_s = timeout_s

    def get(self, path: str) -> Mapping[str, Any]:
        """The object that GET answers."""
        try:
            # What the machine routes abroad must not catch a server on this machine.
            with httpx2.Client(timeout=self._timeout_s, trust_env=False) as client:
                answer = client.get(self.url + path)
            value = json.loads(answer.content) if answer.status_code == 200 else None
        except (httpx2.HTTPError, ValueError) as error:
            raise OpenEnvError(f"GET {path} of {self.url}: {error}") from error
        if not isinstance(value, dict):
            raise OpenEnvError(f"GET {path} of {self.url} answers {answer.status_code}, no object")
        return value

    def begin(self, data: Mapping[str, Any]) -> tuple[Conversation, Mapping[str, Any]]:
        """A connection of its own, and what its first reset answers."""
        deadline, pause = time.monotonic() + self._timeout_s, 0.1
        while True:
            conversation = Conversation(self._connected(), self._timeout_s)
            try:
                return conversation, conversation.ask("reset", data)
            except BaseException as error:
                conversation.close()
                full = isinstance(error, OpenEnvReplyError) and error.code == _FULL
                if not full or time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _connected(self) -> ClientConnection:
        try:
            return connect(
                self.url.replace("http", "ws", 1) + "/ws",
                open_timeout=min(self._timeout_s, 30.0),
                # A server that computes answers no ping; how long it may take is `timeout_s`.
                ping_interval=None,
                close_timeout=5.0,
                max_size=MAX_MESSAGE_BYTES,
                proxy=None,
                # Closed by `Conversation.close`, not where a block ends.
                legacy=True,
            )
        except (OSError, WebSocketException) as error:
            raise OpenEnvError(f"no connection with {self.url}: {error}") from error


class Conversation:
    """One connection, used by one thread at a time."""

    def __init__(self, socket: ClientConnection, timeout_s: float) -> None:
        self._socket = socket
        self._timeout_s = timeout_s

    def ask(self, kind: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """The `data` of the answer. Raises OpenEnvError, OpenEnvReplyError where that is one."""
        try:
            self._socket.send(json.dumps({"type": kind, "data": data}))
            message = json.loads(self._socket.recv(timeout=self._timeout_s))
        except TimeoutError as error:
            raise OpenEnvError(f"{kind}: no answer in {self._timeout_s:g} s") from error
        except (OSError, WebSocketException) as error:
            told = self._last_words()
            if told is not None:
                raise told from error
            raise OpenEnvError(f"{kind}: the connection is lost: {error}") from error
        except (ValueError, RecursionError) as error:
            raise OpenEnvError(f"{kind}: the answer is no JSON") from error
        return _read(kind, message)

    def _last_words(self) -> OpenEnvReplyError | None:
        """An error that a server which is full sent before it closed, unasked."""
        try:
            _read("", json.loads(self._socket.recv(timeout=0)))
        except OpenEnvReplyError as told:
            return told
        except (OSError, WebSocketException, ValueError, OpenEnvError):
            pass
        return None

    def close(self) -> None:
        """Tell the server that the episode is over, and hang up."""
        with suppress(OSError, WebSocketException):
            self._socket.send(json.dumps({"type": "close", "data": {}}))
        with suppress(OSError, WebSocketException):
            self._socket.close()


def _read(kind: str, message: Any) -> Mapping[str, Any]:
    match message:
        case {"type": "error", "data": {"message": told, **rest}}:
            details = rest.get("errors")
            raise OpenEnvReplyError(
                str(rest.get("code", "an error")), f"{told}{_detailed(details)}"
            )
        case {"type": "observation", "data": dict(data)}:
            return data
    raise OpenEnvError(f"{kind}: the answer is {json.dumps(message)[:200]}")


def _detailed(errors: Any) -> str:
    """What pydantic says of each field, where the server passes it on."""
    parts = []
    for each in errors if isinstance(errors, list) else []:
        if isinstance(each, Mapping):
            place = ".".join(str(part) for part in each.get("loc", ()))
            parts.append(f"{place}: {each.get('msg', '')}")
    return f" ({'; '.join(parts)})" if parts else ""
