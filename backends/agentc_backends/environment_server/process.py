"""The process around `application.py`: serves an environment until SIGTERM.

Binds loopback, takes the run's token from AGENTC_TOKEN, and writes a ready file with the address
once it listens. Each environment's `job_serve.py` adds its own options.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn

from agentc.runtime.imported import report, report_at_exit
from agentc.runtime.process import die_with_parent
from agentc_backends.environment_server.application import (
    DEFAULT_IDLE_TIMEOUT,
    DEFAULT_MAX_SESSIONS,
    DEFAULT_THREADS,
    DEFAULT_WAITING,
    create_app,
)
from agentc_backends.environment_server.environment import Environment
from agentc_backends.environment_server.wire import MAX_BODY_BYTES

_GRACE_SECONDS = 0.2


class _Server(uvicorn.Server):
    """Announces itself once it accepts connections, and stops at once when told to."""

    def __init__(self, config: uvicorn.Config, ready_file: Path | None, content: str) -> None:
        super().__init__(config)
        self._ready_file = ready_file
        self._content = content

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready_file is not None:
            _write_atomically(self._ready_file, self._content)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A request that still runs waits for a body from a stalled client, or for a simulator.
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_GRACE_SECONDS)
        for task in self.server_state.tasks:
            task.cancel()
        await super().shutdown(sockets)


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """What every environment server understands."""
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--ready-file", type=Path, help="written when the server listens")
    parser.add_argument("--max-sessions", type=int, default=DEFAULT_MAX_SESSIONS)
    parser.add_argument("--max-waiting", type=int, default=DEFAULT_WAITING, help="calls")
    parser.add_argument("--idle-timeout", type=float, default=DEFAULT_IDLE_TIMEOUT, help="seconds")
    parser.add_argument("--die-with-parent", action="store_true", help="Linux only")


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
    if options.die_with_parent:
        die_with_parent(signal.SIGTERM)
    token = os.environ.get("AGENTC_TOKEN") or None
    if token is None and not _is_loopback(options.host):
        print("refusing to serve beyond loopback without AGENTC_TOKEN", file=sys.stderr)
        return 2
    refused: tuple[type[Exception], ...] = (ValueError, *refusals)
    try:
        identity = open_environment().identity()
    except refused as error:
        print(error, file=sys.stderr)
        return 2
    # Now, for jobs may be published while this server runs on, and at its end again.
    report()
    report_at_exit()
    listener = _listen(options.host, options.port)
    host, port = listener.getsockname()[:2]
    ready = {"host": host, "port": port, "pid": os.getpid(), "identity": identity}
    app = create_app(
        open_environment,
        token=token,
        max_sessions=options.max_sessions,
        idle_timeout=options.idle_timeout,
        threads=threads,
        waiting=options.max_waiting,
    )
    config = uvicorn.Config(
        app,
        lifespan="on",
        # A message is what a body is over HTTP. Connections that are dead show in 40 s.
        ws_max_size=MAX_BODY_BYTES,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        log_level="warning",
        access_log=False,
        server_header=False,
        # A client is silent for as long as its model takes to answer.
        timeout_keep_alive=600,
        timeout_graceful_shutdown=1,
    )
    # uvicorn raises the signal again after its shutdown; being stopped is no failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    _Server(config, options.ready_file, json.dumps(ready)).run(sockets=[listener])
    return 0


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP: asyncio turns Nagle's delay (40 ms a reply) off only for sockets that say so.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(1024)
    return listener


def _write_atomically(path: Path, content: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(content, encoding="utf-8")
    draft.replace(path)
