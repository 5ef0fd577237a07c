"""What replies look like on the wire, when a connection is kept, and what a request costs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import httpx2
import pytest
from answering import Answer, serving

from agentc_backends.clients.connections import Connections
from agentc_backends.clients.request_policy import RateLimits, RetryPolicy
from agentc_backends.clients.transport import Timeouts, Transport

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
Script = list[list[bytes]]


class Server:
    """Sends the pieces of the script's next reply for each request that it reads, on one
    connection or several; `ended` counts connections that clients have closed."""

    def __init__(self, script: Script, *, hang_up: bool = False) -> None:
        self._script = iter(script)
        self._hang_up = hang_up
        self.opened = 0
        self.ended = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        while True:
            await reader.readuntil(b"\r\n\r\n")
            for piece in next(self._script):
                writer.write(piece)
                await asyncio.sleep(0.005)
            if self._hang_up:
                break
        self.ended += 1
        writer.close()


def talk(
    server: Server,
    speak: Callable[[Connections, str], Awaitable[None]],
    *,
    read_s: float = 20.0,
) -> None:
    async def scenario() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await server(reader, writer)
            except (asyncio.IncompleteReadError, ConnectionError):
                server.ended += 1
                writer.close()

        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        connections = Connections("token", connect_s=5.0, read_s=read_s)
        await speak(connections, f"http://127.0.0.1:{port}")
        await connections.close()
        listening.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("pieces", "body", "kept"),
    [
        ([WHOLE], b"{}", True),
        ([WHOLE[i : i + 1] for i in range(len(WHOLE))], b"{}", True),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE], b"{}", True),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], b"", True),
        ([WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")], b"{}", False),
        ([WHOLE.replace(b"1.1", b"1.0")], b"{}", False),
        ([WHOLE + b"more than was asked for"], b"{}", False),
        (
            [CHUNKED + b"3;x=1\r\n{  \r", b"\n1\r\n}\r\n", b"0\r\n\r\n"],
            b"{  }",
            True,
        ),
    ],
    ids=["whole", "bytes", "informational", "empty", "closing", "old", "too much", "chunked"],
)
def test_replies_in_all_their_forms(pieces: list[bytes], body: bytes, kept: bool) -> None:
    server = Server([pieces, [WHOLE]])

    async def speak(connections: Connections, url: str) -> None:
        assert (await connections.request("GET", url, "/a", None)).body == body
        assert (await connections.request("GET", url, "/a", None)).body == b"{}"

    talk(server, speak)
    assert server.opened == (1 if kept else 2)


def test_the_end_of_the_connection_ends_a_reply_without_a_length() -> None:
    server = Server([[b"HTTP/1.1 200 OK\r\n\r\n{", b"}"]], hang_up=True)

    async def speak(connections: Connections, url: str) -> None:
        assert (await connections.request("GET", url, "/a", None)).body == b"{}"

    talk(server, speak)


@pytest.mark.parametrize(
    "pieces",
    [
        [b"SSH-2.0-OpenSSH\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nno header\r\n\r\n"],
        [CHUNKED + b"zz\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"],
        [b""],
    ],
    ids=["protocol", "length", "header", "chunk", "cut", "nothing"],
)
def test_what_is_no_reply_is_an_error(pieces: list[bytes]) -> None:
    async def speak(connections: Connections, url: str) -> None:
        with pytest.raises(httpx2.RemoteProtocolError):
            await connections.request("GET", url, "/a", None)

    talk(Server([pieces], hang_up=True), speak)


def test_a_silent_server_is_waited_for_so_long_and_no_longer() -> None:
    server = Server([[WHOLE[:20]]])

    async def speak(connections: Connections, url: str) -> None:
        with pytest.raises(httpx2.ReadTimeout):
            await connections.request("GET", url, "/a", None)

    talk(server, speak, read_s=0.2)


def test_a_connection_that_is_closed_before_the_request_is_no_long_wait() -> None:
    """Between the opening of a connection and the first request on it nobody waits for it."""

    async def speak(connections: Connections, base: str) -> None:
        port = int(base.rpartition(":")[2])
        connection = await connections._connect("127.0.0.1", port)
        connection.connection_lost(ConnectionResetError("by the server"))
        with pytest.raises(httpx2.ConnectError, match="before any request"):
            await asyncio.wait_for(connection.exchange(b"GET / HTTP/1.1\r\n\r\n", 300.0), 60)

    talk(Server([[WHOLE]]), speak)


def test_who_does_not_wait_any_more_closes_the_connection() -> None:
    server = Server([[b""]])

    async def speak(connections: Connections, url: str) -> None:
        asking = asyncio.create_task(connections.request("POST", url, "/a", b"{}"))
        while not server.opened:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        while not server.ended:
            await asyncio.sleep(0.01)

    talk(server, speak)


@pytest.mark.parametrize("target", ["/a b", "/a\r\nHost: other"])
def test_a_path_holds_nothing_but_a_path(target: str) -> None:
    async def speak(connections: Connections, url: str) -> None:
        with pytest.raises(httpx2.UnsupportedProtocol):
            await connections.request("GET", url, target, None)

    talk(Server([]), speak)
    with pytest.raises(ValueError, match="printable"):
        Connections("a\r\nb", connect_s=1, read_s=1)


def test_a_request_to_a_server_of_this_run_costs_a_fraction_of_a_general_clients() -> None:
    """CPU of this thread, the least of several turns: the machine's load does not enter."""

    async def cost(ask: Callable[[], Awaitable[object]]) -> float:
        await ask()
        began = time.thread_time()
        for _ in range(40):
            await ask()
        return time.thread_time() - began

    async def compare(url: str) -> float:
        transport = Transport(
            [url], None, retry=RetryPolicy(), limits=RateLimits(), timeouts=Timeouts()
        )
        ours, general = [], []
        async with httpx2.AsyncClient(trust_env=False) as client:
            for _ in range(5):
                ours.append(await cost(lambda: transport.call("POST", "/a", {"b": 1})))
                general.append(await cost(lambda: client.post(f"{url}/a", json={"b": 1})))
        await transport.close()
        return min(ours) / min(general)

    with serving(lambda number, path, body: Answer()) as server:
        assert asyncio.run(compare(server.url)) < 0.5
