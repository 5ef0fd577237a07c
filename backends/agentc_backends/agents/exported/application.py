"""The application of an environment that `agentc dev export openenv` wrote into a package, whose
`server/app.py` calls these functions."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from agentc_backends.agents.exported.world import exported_opener
from agentc_backends.environments.server.application import create_app
from agentc_backends.environments.server.wire import MAX_BODY_BYTES


def exported_app(file: Path) -> ASGIApp:
    """The application of `environment.json`: the program of a lease, and its settings. It asks for
    a token where AGENTC_TOKEN is set. Raises NotInsideError where the environment cannot open."""
    return create_app(exported_opener(file), token=os.environ.get("AGENTC_TOKEN") or None)


def serve_exported(app: ASGIApp, arguments: Sequence[str] | None = None) -> None:
    """Serve it until a signal; on loopback unless `--host` says otherwise."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    read = parser.parse_args(arguments)
    uvicorn.run(app, host=read.host, port=read.port, ws_max_size=MAX_BODY_BYTES)
