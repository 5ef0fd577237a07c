"""Runs the application of a model server as a process: its arguments, and a bounded shutdown."""

from __future__ import annotations

import argparse
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from types import FrameType

from starlette.types import ASGIApp

from agentc.program.settings import declared_in
from agentc_backends.server_process import AnnouncedServer, add_address_arguments, prepare_process

__all__ = ["GRACE_S", "add_process_arguments", "add_settings", "prepare_process", "serve"]

GRACE_S = 1.0
"""Seconds that open requests get after SIGTERM; half a second later the process is gone."""


def add_process_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that every model server takes."""
    add_address_arguments(parser)
    parser.add_argument("--served-name", default="policy", help="the model's name in requests")


def add_settings(parser: argparse.ArgumentParser, settings: type) -> None:
    """An argument for each setting of a dataclass, under its name."""
    for each in declared_in(settings):
        parser.add_argument(
            f"--{each.name.replace('_', '-')}",
            type=each.kind,
            choices=each.choices or None,
            default=each.default,
            help=each.about.doc.replace("%", "%%"),
        )


def serve(
    app: ASGIApp,
    options: argparse.Namespace,
    *,
    facts: Mapping[str, object],
    on_stop: Callable[[], None],
    on_start: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. `on_start` is awaited on the loop before anyone is served;
    `on_stop` is called at the signal and must fail what is still under way; `facts` are added to
    the ready file."""
    _Server(app, options, facts, on_stop, on_start).serve_until_stopped()


class _Server(AnnouncedServer):
    """Never outlives its grace."""

    def __init__(
        self,
        app: ASGIApp,
        options: argparse.Namespace,
        facts: Mapping[str, object],
        on_stop: Callable[[], None],
        on_start: Callable[[], Awaitable[None]] | None,
    ) -> None:
        super().__init__(
            app, options, facts=facts, lifespan="off", timeout_graceful_shutdown=int(GRACE_S)
        )
        self._on_stop = on_stop
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._on_start is not None:
            await self._on_start()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        # A step of a large model cannot be interrupted from Python.
        last_resort = threading.Timer(GRACE_S + 0.5, os._exit, (0,))
        last_resort.daemon = True
        last_resort.start()
        self._on_stop()
