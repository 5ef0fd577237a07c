"""The server's side of the engine's process: asks it for work, and ends when it does.

Neighbours: `engine_process.py` (the other side), `channel.py` (what they say), `served_model.py`
(the user). Everything but `start` belongs to the event loop's thread.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agentc_backends.openai_api.text_model import ServerStoppedError, Told
from agentc_backends.servers.transformers.channel import (
    Cancel,
    DrawnToken,
    EngineTask,
    Loaded,
    LoadRefusal,
    Reload,
    Result,
    Unpacker,
    packed,
)
from agentc_backends.servers.transformers.engine_process import EngineSettings, fork_engine

_PIECE = 1 << 16


class EngineEndedError(Exception):
    """The engine's process has ended by itself; it has written the cause before."""


class EngineClient:
    """One engine's process. `on_loss` is called after its unexpected end has been handed to
    everyone who waits for it."""

    def __init__(self, process: int, channel: socket.socket, on_loss: Callable[[], None]) -> None:
        self.process = process
        self._channel = channel
        self._on_loss = on_loss
        self._numbers = itertools.count()
        self._results: dict[int, asyncio.Future[Result]] = {}
        self._told: dict[int, tuple[Told, int]] = {}
        self._reloads: list[asyncio.Future[Loaded]] = []
        self._transport: asyncio.WriteTransport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: Exception | None = None
        self._reaped = False

    @classmethod
    def start(
        cls, settings: EngineSettings, on_loss: Callable[[], None]
    ) -> tuple[EngineClient, Loaded]:
        """Fork the process and wait until it has loaded its checkpoint. Raises ValueError when
        that cannot be served, EngineEndedError when loading it has ended the process."""
        client = cls(*fork_engine(settings), on_loss)
        unpacker = Unpacker()
        while data := client._channel.recv(_PIECE):
            for message in unpacker.feed(data):
                if isinstance(message, Loaded):
                    return client, message
                assert isinstance(message, LoadRefusal)
                client.reap()
                raise ValueError(message.reason)
        raise EngineEndedError(client.reap())

    async def connect(self) -> None:
        """Listen to the process on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._transport, _ = await self._loop.create_unix_connection(
            lambda: _Listener(self._heard, self._lost), sock=self._channel
        )

    async def run(self, works: Iterable[EngineTask], told: Told | None = None) -> list[Result]:
        """Results in order; `number` is set here. What is left is cancelled with the caller.
        `told` hears each token of the works, by their place among them, as it is drawn."""
        loop = asyncio.get_running_loop()
        wanted = told is not None
        numbered = [replace(w, number=next(self._numbers), told=wanted) for w in works]
        if told is not None:
            self._told.update({w.number: (told, place) for place, w in enumerate(numbered)})
        waiting = {work.number: loop.create_future() for work in numbered}
        try:
            self._send(*numbered)
            self._results.update(waiting)
            return list(await asyncio.gather(*waiting.values()))
        finally:
            for number in waiting:
                self._told.pop(number, None)
            left = [number for number in waiting if self._results.pop(number, None) is not None]
            if left and self._end is None:
                self._send(*map(Cancel, left))

    async def reload(self, path: str) -> Loaded:
        """Serve another directory once nothing is running. Raises ValueError when it cannot be
        served; the old weights then stay."""
        answer: asyncio.Future[Loaded] = asyncio.get_running_loop().create_future()
        self._send(Reload(path))
        self._reloads.append(answer)
        return await answer

    def stop(self) -> None:
        """End the process, and fail everything under way with StoppedError. May be called by a
        handler of signals."""
        if self._end is None:
            self._end = ServerStoppedError()
            self._kill()
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._fail)

    def reap(self) -> str:
        """Wait for the end of the process, so that what it has used counts as this one's children;
        how it ended."""
        if self._reaped:
            return "the engine has ended"
        _, status = os.waitpid(self.process, 0)
        self._reaped = True
        if os.WIFSIGNALED(status):
            name = signal.Signals(os.WTERMSIG(status)).name
            return f"the engine's process was ended by {name}"
        return f"the engine's process ended with status {os.WEXITSTATUS(status)}"

    def _send(self, *messages: object) -> None:
        if self._end is not None:
            raise self._end
        assert self._transport is not None, "not connected"
        self._transport.write(packed(*messages))

    def _heard(self, message: object) -> None:
        if isinstance(message, DrawnToken):
            if message.number in self._told:
                told, place = self._told[message.number]
                told(place, (message.token,))
            return
        if isinstance(message, Result):
            result = self._results.pop(message.number, None)
            if result is not None and not result.done():
                result.set_result(message)
            return
        # Answers to reloads come in the order of their requests.
        answer = self._reloads.pop(0)
        if answer.done():
            return
        if isinstance(message, Loaded):
            answer.set_result(message)
        elif isinstance(message, LoadRefusal):
            answer.set_exception(ValueError(message.reason))

    def _lost(self) -> None:
        if self._end is not None:
            return
        # It may have closed its socket without ending.
        self._kill()
        cause = self.reap()
        print(cause, file=sys.stderr, flush=True)
        self._end = EngineEndedError(cause)
        self._fail()
        self._on_loss()

    def _fail(self) -> None:
        assert self._end is not None
        waiting: list[asyncio.Future[Any]] = [*self._results.values(), *self._reloads]
        for future in waiting:
            if not future.done():
                future.set_exception(self._end)
        self._results.clear()
        self._reloads.clear()

    def _kill(self) -> None:
        if not self._reaped:
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)


class _Listener(asyncio.Protocol):
    """Puts together what the process says."""

    def __init__(self, heard: Callable[[object], None], lost: Callable[[], None]) -> None:
        self._heard = heard
        self._lost = lost
        self._unpacker = Unpacker()

    def data_received(self, data: bytes) -> None:
        for message in self._unpacker.feed(data):
            self._heard(message)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost()
