"""Shared servers of a run, as `agentc run` sees them: what they do, why they failed, and that none
is left. Neighbour: `agentc.runtime.servers.shared_server_files` (their files)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from agentc.plan.work import Document
from agentc.run.ending_record import read_dated
from agentc.run.observe import clock_ahead
from agentc.runtime.servers.shared_server_files import CopyFolder, ServerFolder
from agentc.runtime.servers.shared_server_launch import end_unused, locked
from agentc.runtime.store.layout import StoreLayout

_END_S = 15.0


class ServerWatch:
    """Tells what is new about the shared servers of a plan; `since` is when the run began. Files
    tell by their own dates what was before: clocks of nodes may differ."""

    def __init__(self, layout: StoreLayout, document: Document, since: float) -> None:
        self._copies = [
            (f"{server['id']}" + (f", copy {number}" if server["replicas"] > 1 else ""), copy)
            for server in document.get("servers") or []
            for number, copy in enumerate(ServerFolder(layout, server).copies(), start=1)
        ]
        self._since = since + (clock_ahead(layout.root) if since else 0.0)
        self._told: dict[str, object] = {}

    def news(self) -> Iterator[str]:
        """A line for each copy whose state has changed since the last look."""
        for name, copy in self._copies:
            state, dated = read_dated(copy.state_file)
            now = (state.get("state"), state.get("generation"))
            if state and dated >= self._since and self._told.get(name) != now:
                self._told[name] = now
                yield f"{name}: {_words(state)}"

    def failures(self) -> list[str]:
        """Why copies failed in this run, with the paths of their logs."""
        return [
            f"{name} failed: {state.get('message')}\n  log: {copy.path / 'host.log'}"
            for name, copy in self._copies
            for state, dated in [read_dated(copy.state_file)]
            if state.get("state") == "failed" and dated >= self._since
        ]


def release_servers(layout: StoreLayout, document: Document, driver: int) -> list[str]:
    """Give back what the ended Snakemake (its pid) held of shared servers, and wait until those
    that nobody else uses are gone; names of those that are not."""
    folders = [ServerFolder(layout, server) for server in document.get("servers") or []]
    ending: list[tuple[str, ServerFolder, CopyFolder]] = []
    for folder in folders:
        for lease in folder.leases.glob(f"run-{os.uname().nodename}-{driver}-*"):
            lease.unlink(missing_ok=True)
        if folder.path.is_dir() and end_unused(folder, layout):
            ending += [(folder.server["id"], folder, copy) for copy in folder.copies()]
    deadline = time.monotonic() + _END_S
    while True:
        left = [
            name
            for name, folder, copy in ending
            if copy.state().get("host") == os.uname().nodename
            and locked(layout.lock(folder.name_of(copy)))
        ]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def _words(state: Mapping[str, Any]) -> str:
    where = f" on {state['node']}" if state.get("node") else ""
    where += f", SLURM job {state['slurm']}" if state.get("slurm") else ""
    message = str(state.get("message") or "").split("\n")[0]
    return f"{state.get('state')}{where}" + (f" ({message})" if message else "")
