"""HTTP/1.1 over kept connections to servers of this run, for a tenth of a general client's CPU.

Plain text only: no proxies, redirects, cookies or compression. `transport.py` asks external
endpoints by httpx2; what fails here is raised as its exceptions, so that both read alike.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2

_KEPT_S = 4.0
"""A kept connection that the server closes at the same moment is an error to us; uvicorn's own
limit, which vLLM keeps, is 5 s of silence."""
_MOST_HEAD_BYTES = 64 << 10
_HEAD_END = b"\r\n\r\n"
_UNSAFE = re.compile(r"[^\x21-\x7e]")


@dataclass(frozen=True, slots=True)
class RawReply:
    """A reply; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class Connections:
    """Connections to any number of servers, each used by one request at a time."""

    def __init__(self, token: str | None, *, connect_s: float, read_s: float) -> None:
        if token is not None and _UNSAFE.search(token.replace(" ", "")):
            raise ValueError("a token holds printable ASCII only")
        self._fields = "Accept: */*\r\n"
        if token is not None:
            self._fields += f"Authorization: Bearer {token}\r\n"
        self._connect_s = connect_s
        self._read_s = read_s
        self._idle: dict[str, list[_Connection]] = {}

    async def request(self, method: str, base: str, target: str, content: bytes | None) -> RawReply:
        """The reply to `content`, JSON. Raises httpx2.ConnectError and httpx2.ConnectTimeout where
        the request was never sent, other httpx2.TransportErrors where it may have been."""
        parts = urlsplit(base)
        target = parts.path + target
        if _UNSAFE.search(target):
            raise httpx2.UnsupportedProtocol(f"no path of a request: {target!r}")
        head = f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{self._fields}"
        if content is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        connection = self._idle_connection(base) or await self._connect(
            parts.hostname or "", parts.port or 80
        )
        answer = await connection.exchange(f"{head}\r\n".encode() + (content or b""), self._read_s)
        if connection.reusable:
            self._idle.setdefault(base, []).append(connection)
        return answer

    async def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.end()
        self._idle.clear()

    def _idle_connection(self, base: str) -> _Connection | None:
        idle = self._idle.get(base, [])
        while idle:
            # The last used first, so that what is not needed any more grows old.
            connection = idle.pop()
            if connection.reusable and connection.silent_s < _KEPT_S:
                return connection
            connection.end()
        return None

    async def _connect(self, host: str, port: int) -> _Connection:
        loop = asyncio.get_running_loop()
        connection = _Connection(loop)
        opening = loop.create_connection(lambda: connection, host, port)
        try:
            await asyncio.wait_for(opening, self._connect_s)
        except asyncio.TimeoutError as error:
            raise httpx2.ConnectTimeout(f"no connection in {self._connect_s:g} s") from error
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection; `exchange` sends a request and reads its reply."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[RawReply] | None = None
        self._reader = _ReplyReader()
        self._heard = loop.time()
        self.reusable = True

    @property
    def silent_s(self) -> float:
        return self._loop.time() - self._heard

    async def exchange(self, request: bytes, read_s: float) -> RawReply:
        assert self._transport is not None
        if not self.reusable:
            # It was closed between its opening and now, when nobody waited: nothing was sent.
            raise httpx2.ConnectError("the server closed the connection before any request")
        self._reader, self._heard = _ReplyReader(), self._loop.time()
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_later(read_s, self._check_silence, read_s, waiter)
        self._transport.write(request)
        try:
            answer: RawReply = await waiter
        except BaseException:
            # Also when the caller is cancelled: the server sees that nobody waits any more.
            self.end()
            raise
        finally:
            timer.cancel()
            self._waiter = None
        if not self._reader.keep:
            self.end()
        return answer

    def end(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        if self._waiter is None or self._waiter.done():
            # Nothing was asked.
            self.end()
            return
        try:
            answer = self._reader.read(data)
        except ValueError as error:
            self._waiter.set_exception(httpx2.RemoteProtocolError(str(error)))
            return
        if answer is not None:
            self._waiter.set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        self.reusable = False
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        answer = None if error else self._reader.at_end()
        if answer is not None:
            waiter.set_result(answer)
        elif error is not None:
            waiter.set_exception(httpx2.ReadError(str(error)))
        else:
            message = "the server closed the connection before the end of its reply"
            waiter.set_exception(httpx2.RemoteProtocolError(message))

    def _check_silence(self, read_s: float, waiter: asyncio.Future[RawReply]) -> None:
        """Whether the server has been silent for too long."""
        if waiter.done():
            return
        rest = read_s - self.silent_s
        if rest <= 0:
            waiter.set_exception(httpx2.ReadTimeout(f"silent for {read_s:g} s"))
        else:
            self._loop.call_later(rest, self._check_silence, read_s, waiter)


class _ReplyReader:
    """Puts one reply together as its bytes arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._length: int | None = None
        self._chunks: list[bytes] | None = None
        self.keep = False
        """Whether the connection can be used again, once the reply is whole."""

    def read(self, data: bytes) -> RawReply | None:
        """The reply once it is whole. Raises ValueError for what is none."""
        self._buffer += data
        while self._status < 200:
            at = self._buffer.find(_HEAD_END)
            if at < 0:
                if len(self._buffer) > _MOST_HEAD_BYTES:
                    raise ValueError("the head of the reply has no end")
                return None
            head = self._buffer[:at].decode("latin-1")
            del self._buffer[: at + len(_HEAD_END)]
            self._begin(head)
        if self._chunks is not None:
            return self._chunked()
        if self._length is None or len(self._buffer) < self._length:
            return None
        self.keep = self.keep and len(self._buffer) == self._length
        return self._answer(bytes(self._buffer[: self._length]))

    def at_end(self) -> RawReply | None:
        """The reply, where the end of the connection is its end."""
        whole = self._status >= 200 and self._length is None and self._chunks is None
        return self._answer(bytes(self._buffer)) if whole else None

    def _begin(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        version, _, rest = first.partition(" ")
        status = rest[:3]
        if not version.startswith("HTTP/1.") or not (status.isascii() and status.isdigit()):
            raise ValueError(f"no reply of HTTP/1.1: {first[:80]!r}")
        self._status = int(status)
        self._headers = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise ValueError(f"no header: {line[:80]!r}")
            self._headers[name.lower()] = value.strip()
        connection = self._headers.get("connection", "").lower()
        self.keep = version == "HTTP/1.1" and "close" not in connection
        if self._headers.get("transfer-encoding", "").lower() == "chunked":
            self._chunks = []
        elif self._status in (204, 304):
            self._length = 0
        elif "content-length" in self._headers:
            self._length = _natural(self._headers["content-length"], 10)
        else:
            self.keep = False

    def _chunked(self) -> RawReply | None:
        assert self._chunks is not None
        at = 0
        while (line := self._buffer.find(b"\r\n", at)) >= 0:
            size = _natural(self._buffer[at:line].split(b";")[0].decode("latin-1").strip(), 16)
            if size == 0:
                # Trailing headers may follow; whoever sends some gets a new connection.
                self.keep = self.keep and self._buffer[line:] == _HEAD_END
                return self._answer(b"".join(self._chunks))
            begin, end = line + 2, line + 2 + size
            if len(self._buffer) < end + 2:
                break
            self._chunks.append(bytes(self._buffer[begin:end]))
            at = end + 2
        del self._buffer[:at]
        return None

    def _answer(self, body: bytes) -> RawReply:
        return RawReply(self._status, self._headers, body)


def _natural(text: str, base: int) -> int:
    number = int(text, base)
    if number < 0:
        raise ValueError(f"{text} bytes")
    return number
