"""A way to a model server on which a stream is cut off in its middle: for `test_recorder.py`, and
for the tests of `rollout.command`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from urllib.parse import urlsplit


@asynccontextmanager
async def cut_once(url: str, *, close: bool) -> AsyncIterator[str]:
    """A way to a server on which the first stream goes no further than its third event: the
    connection is closed there, or hangs until its other end closes it."""
    host = urlsplit(url)
    cuts = iter([True])

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(host.hostname, host.port)

        async def ask() -> None:
            while data := await reader.read(65536):
                forth.write(data)
            forth.close()

        asking, seen = asyncio.ensure_future(ask()), b""
        with suppress(ConnectionError):
            while data := await back.read(65536):
                seen += data
                if seen.count(b"data: ") > 3 and next(cuts, False):
                    kept = b"data: ".join(seen.split(b"data: ")[:4])
                    writer.write(kept[len(seen) - len(data) :])
                    await writer.drain()
                    if not close:
                        await asking
                    break
                writer.write(data)
        asking.cancel()
        writer.close()
        forth.close()

    async with await asyncio.start_server(carry, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@contextmanager
def cut_once_beside(url: str, *, close: bool) -> Iterator[str]:
    """`cut_once` in a thread, for those who have no event loop of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    way = cut_once(url, close=close)
    try:
        yield asyncio.run_coroutine_threadsafe(way.__aenter__(), loop).result()
        asyncio.run_coroutine_threadsafe(way.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
