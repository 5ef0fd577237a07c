"""One of our environment servers, started for a benchmark, and how a client asks it.

Neighbours: `side_by_side.py`, `detective.py`, `sciworld.py`.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Server:
    """A started server; one connection for each client."""

    process: subprocess.Popen[bytes]
    host: str
    port: int

    def client(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=600)

    def children(self) -> list[int]:
        """Process ids of what it has started."""
        found: list[int] = []
        for children in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            found += [int(each) for each in children.read_text().split()]
        return found


@contextmanager
def started(
    environment: str, flags: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """`job_serve.py` of `environment`, ended with the block."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        argv = [sys.executable, "-m", f"agentc_backends.environments.{environment}.job_serve"]
        argv += ["--die-with-parent", "--ready-file", str(ready), *flags]
        process = subprocess.Popen(argv, env={**os.environ, **(variables or {})})
        while not ready.exists():
            if process.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.05)
        address = json.loads(ready.read_text())
        try:
            yield Server(process, address["host"], address["port"])
        finally:
            process.terminate()
            process.wait(30)


def call(client: http.client.HTTPConnection, path: str, **body: object) -> Any:
    """The server's answer; SystemExit when it is an error."""
    client.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(client.getresponse().read())
    if isinstance(answer, dict) and "error" in answer:
        raise SystemExit(f"{path}: {answer['error']}")
    return answer
