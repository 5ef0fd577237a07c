"""The fixture `start`; the servers that it starts are in `running.py`, which tests import too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from running import Running, Start


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """`start("textcraft", "--max-sessions", "3")`: a server in a process of its own."""
    servers: list[Running] = []

    def begin(name: str, *flags: str, token: str | None = None) -> Running:
        folder = tmp_path_factory.mktemp(name)
        servers.append(Running(name, folder, *flags, token=token))
        return servers[-1]

    yield begin
    for server in servers:
        server.kill()
