"""Serves an application on the loopback of this machine from inside of a job, on the job's own
event loop, without touching its signals. Neighbour: `recorder.py`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import uvicorn
from starlette.types import ASGIApp

from agentc_backends.server_process import listen

_GRACE_S = 1


class _Inside(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal ends the job as it would without a server."""
        yield


@contextlib.asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    """The address, `http://127.0.0.1:PORT`, while the context lasts."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        # A program is silent for as long as its model, or its own work, takes.
        timeout_keep_alive=600,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Inside(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()
