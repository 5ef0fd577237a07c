"""What the processes of all our servers share: arguments, token, address, the ready file, uvicorn.

`openai_api/process.py` and `../environments/server/process.py` serve by it, and differ in how they
end.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from agentc.program.child import die_with_parent
from agentc.program.import_report import report, report_at_exit

REFUSED = 2
"""Exit status of a server that will not start."""


def add_address_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to listen, and for whom."""
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--ready-file", type=Path, help="written when the server listens")
    parser.add_argument("--die-with-parent", action="store_true", help="Linux only")


def prepare_process(options: argparse.Namespace) -> str | None:
    """The token from AGENTC_TOKEN. Exits with REFUSED where an open address has none."""
    if options.die_with_parent:
        die_with_parent(signal.SIGTERM)
    token = os.environ.get("AGENTC_TOKEN") or None
    if token is None and not _is_loopback(options.host):
        print("refusing to serve beyond loopback without AGENTC_TOKEN", file=sys.stderr)
        raise SystemExit(REFUSED)
    return token


class AnnouncedServer(uvicorn.Server):
    """Says where it is once it accepts connections: in the ready file, or on standard output."""

    def __init__(
        self,
        app: ASGIApp,
        options: argparse.Namespace,
        *,
        facts: Mapping[str, object],
        **settings: Any,
    ) -> None:
        """`facts` are added to the ready file; `settings` are uvicorn's."""
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                # A client is silent for as long as the other server takes to answer it.
                timeout_keep_alive=600,
                **settings,
            )
        )
        self._options = options
        self._facts = facts
        self._address: tuple[str, int] = ("", 0)

    def serve_until_stopped(self) -> None:
        """Listen and serve until SIGTERM or SIGINT."""
        # Now, for jobs may be published while this server runs on, and at its end again.
        report()
        report_at_exit()
        listener = listen(self._options.host, self._options.port)
        self._address = listener.getsockname()[:2]
        # uvicorn raises the signal again after its shutdown; being stopped is no failure.
        signal.signal(signal.SIGTERM, lambda *_: None)
        self.run(sockets=[listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self._address
        ready = json.dumps({"host": host, "port": port, "pid": os.getpid(), **self._facts})
        if self._options.ready_file is None:
            print(ready, flush=True)
        else:
            _write_atomically(self._options.ready_file, ready)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP: asyncio turns Nagle's delay (40 ms a reply) off only for sockets that say so.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(1024)
    return listener


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _write_atomically(path: Path, content: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(content, encoding="utf-8")
    draft.replace(path)
