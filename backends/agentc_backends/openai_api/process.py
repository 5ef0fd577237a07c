"""Runs an application as a process: address, ready file, signals, a bounded end.

Used by the `job_serve` programs of the model servers.
"""

from __future__ import annotations

import argparse
import ctypes
import ipaddress
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from agentc.runtime.imported import report, report_at_exit

_PR_SET_PDEATHSIG = 1
GRACE_S = 1.0
"""Seconds that open requests get after SIGTERM; half a second later the process is gone."""


def add_process_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that every model server takes."""
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--ready-file", type=Path, help="written when the server listens")
    parser.add_argument("--served-name", default="policy", help="the model's name in requests")
    parser.add_argument("--die-with-parent", action="store_true", help="Linux only")


def begin(options: argparse.Namespace) -> str | None:
    """Take the token from AGENTC_TOKEN and refuse an open address without one.

    Exits with status 2 on refusal.
    """
    if options.die_with_parent:
        _die_with_parent()
    token = os.environ.get("AGENTC_TOKEN") or None
    if token is None and not _is_loopback(options.host):
        sys.exit("refusing to serve beyond loopback without AGENTC_TOKEN")
    return token


def serve(
    app: ASGIApp,
    options: argparse.Namespace,
    *,
    facts: Mapping[str, object],
    on_stop: Callable[[], None],
) -> None:
    """Serve until SIGTERM or SIGINT. `on_stop` is called at the signal and must fail what is
    still under way; `facts` are added to the ready file."""
    # Now, for jobs may be published while this server runs on, and at its end again.
    report()
    report_at_exit()
    listener = _listen(options.host, options.port)
    host, port = listener.getsockname()[:2]
    ready = {"host": host, "port": port, "pid": os.getpid(), **facts}
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        # A client may be silent for as long as its environment takes to answer.
        timeout_keep_alive=600,
        timeout_graceful_shutdown=int(GRACE_S),
    )
    # uvicorn raises the signal again after its shutdown; being stopped is no failure.
    signal.signal(signal.SIGTERM, lambda *_: None)
    _Server(config, options.ready_file, json.dumps(ready), on_stop).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Announces itself once it accepts connections, and never outlives its grace."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready_file: Path | None,
        content: str,
        on_stop: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._ready_file = ready_file
        self._content = content
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready_file is not None:
            _write_atomically(self._ready_file, self._content)
        else:
            print(self._content, flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        # A step of a large model cannot be interrupted from Python.
        last_resort = threading.Timer(GRACE_S + 0.5, os._exit, (0,))
        last_resort.daemon = True
        last_resort.start()
        self._on_stop()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(1024)
    return listener


def _write_atomically(path: Path, content: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(content, encoding="utf-8")
    draft.replace(path)


def _die_with_parent() -> None:
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        # The parent ended before the request took effect, so no signal will come.
        sys.exit(0)
