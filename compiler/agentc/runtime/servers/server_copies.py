"""Copies of a model's server within one job, each on GPUs of its own (docs/design/devices.md).

`lease.py` has one of them, `shared_lease.py` those of a server that several jobs share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentc.runtime.servers.lease import LeasedServer

_OF_A_COPY = ("ready_s", "cpu_s", "max_rss_mb")


class ServerCopies:
    """Several servers that are alike, each on GPUs of its own, as one lease of a job."""

    remote = False

    def __init__(self, copies: Sequence[LeasedServer]) -> None:
        self.role = copies[0].role
        self.spec = copies[0].spec
        self.copies = list(copies)
        for copy in copies:  # a client knows one token
            copy.token = copies[0].token

    @property
    def endpoint(self) -> dict[str, Any]:
        """As of one, with the addresses of all under `urls`."""
        return {**self.copies[0].endpoint, "urls": [copy.url for copy in self.copies]}

    def manifest(self) -> dict[str, Any]:
        """As of one, with what each used."""
        found = self.copies[0].manifest()
        found["copies"] = [
            {name: each for name, each in copy.manifest().items() if name in _OF_A_COPY}
            for copy in self.copies
        ]
        return found
