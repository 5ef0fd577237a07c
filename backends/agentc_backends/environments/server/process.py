"""The process around `application.py`: serves an environment until SIGTERM.

Binds loopback, takes the run's token from AGENTC_TOKEN, and writes a ready file with the address
once it listens. `program.py` adds each environment's settings.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
from collections.abc import Callable

from agentc_backends.environments.server.application import (
    DEFAULT_IDLE_TIMEOUT,
    DEFAULT_MAX_SESSIONS,
    DEFAULT_THREADS,
    DEFAULT_WAITING,
    create_app,
)
from agentc_backends.environments.server.environment import Environment
from agentc_backends.environments.server.settings import PRIVILEGED
from agentc_backends.environments.server.wire import MAX_BODY_BYTES
from agentc_backends.server_process import (
    REFUSED,
    AnnouncedServer,
    add_address_arguments,
    prepare_process,
)

_GRACE_SECONDS = 0.2


class _Server(AnnouncedServer):
    """Stops at once when told to."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A request that still runs waits for a body from a stalled client, or for a simulator.
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_GRACE_SECONDS)
        for task in self.server_state.tasks:
            task.cancel()
        await super().shutdown(sockets)


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """What every environment server understands."""
    add_address_arguments(parser)
    parser.add_argument("--max-sessions", type=int, default=DEFAULT_MAX_SESSIONS)
    parser.add_argument("--max-waiting", type=int, default=DEFAULT_WAITING, help="calls")
    parser.add_argument(PRIVILEGED, action="store_true", help="give what no agent may see")
    parser.add_argument("--idle-timeout", type=float, default=DEFAULT_IDLE_TIMEOUT, help="seconds")


def serve(
    open_environment: Callable[[], Environment],
    options: argparse.Namespace,
    *,
    refusals: tuple[type[Exception], ...] = (),
    threads: int = DEFAULT_THREADS,
) -> int:
    """The exit status: 0 after SIGTERM, 2 when the server refuses to start.

    `refusals` are exceptions of `open_environment` (besides ValueError) whose message tells a
    person what to mend.
    """
    token = prepare_process(options)
    refused: tuple[type[Exception], ...] = (ValueError, *refusals)
    try:
        identity = open_environment().identity()
    except refused as error:
        print(error, file=sys.stderr)
        return REFUSED
    app = create_app(
        open_environment,
        token=token,
        max_sessions=options.max_sessions,
        idle_timeout=options.idle_timeout,
        threads=threads,
        waiting=options.max_waiting,
        privileged=options.privileged,
    )
    server = _Server(
        app,
        options,
        facts={"identity": identity},
        lifespan="on",
        # A message is what a body is over HTTP. Connections that are dead show in 40 s.
        ws_max_size=MAX_BODY_BYTES,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        timeout_graceful_shutdown=1,
    )
    server.serve_until_stopped()
    return 0
