"""Files of a server that several jobs share: where it listens, that it lives, who uses it.

They are the whole protocol. `shared_server_launch.py` starts copies that are missing,
`shared_server_host.py` runs one copy and writes what it says of itself, `shared_server.py` reads
that in the jobs, which hold leases here. docs/design/shared_servers.md has the reasons.
"""

from __future__ import annotations

import binascii
import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agentc.program.job import read_json, write_json
from agentc.runtime.store.layout import StoreLayout

LEASE_VARIABLE = "AGENTC_SERVER_LEASE_S"
LOST_S = 20.0
"""A copy that has not been heard of for so long is lost, whatever its port does: its node may be
gone, and nothing refuses a connection there."""
_LEASE_S = 60.0
_RENEWALS = 6
"""A lease is renewed so often in its time: a few may fail on a busy file system."""


def lease_seconds() -> float:
    """How long a server stays for somebody of whom nothing is heard any more."""
    try:
        return max(1.0, float(os.environ[LEASE_VARIABLE]))
    except (KeyError, ValueError):
        return _LEASE_S


def node_name() -> str:
    """This node, as SLURM calls it, else as it calls itself."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


class CopyFolder:
    """What one copy (replica) of a server says of itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = path / "logs"
        self.state_file = path / "state.json"
        self.endpoint_file = path / "endpoint.json"
        self.beat_file = path / "beat"
        self.launched_file = path / "launched.json"

    def state(self) -> dict[str, Any]:
        """`{"state": "starting" | "ready" | "restarting" | "failed" | "ended", "generation",
        "message", "host", "node", "pid", "slurm", "time"}`; {} when it never ran."""
        return read_json(self.state_file)

    def endpoint(self) -> dict[str, Any]:
        """Where it listens, with its token; {} while it does not."""
        return read_json(self.endpoint_file)

    def write_endpoint(self, value: Mapping[str, Any]) -> None:
        """Readable by this user alone: it holds the token."""
        write_private(self.endpoint_file, json.dumps(value, sort_keys=True))

    def clear(self) -> None:
        """Nobody listens any more."""
        with suppress(FileNotFoundError):
            self.endpoint_file.unlink()


class ServerFolder:
    """A shared server of this user: its copies, and the leases of those who use it."""

    def __init__(self, layout: StoreLayout, server: Mapping[str, Any]) -> None:
        self.server = server
        folder = layout.root / "servers" / str(os.getuid()) / str(server["key"])
        # What one node shares is a server of each node.
        self.path = folder / node_name() if server["scope"] == "node" else folder
        self.leases = self.path / "leases"
        self.launch_file = self.path / "launch.json"
        self.token_file = self.path / "token"
        self.closing_file = self.path / "closing"

    def copies(self) -> list[CopyFolder]:
        """One for each replica, in order."""
        count = int(self.server.get("replicas") or 1)
        return [CopyFolder(self.path / str(number)) for number in range(1, count + 1)]

    def name_of(self, copy: CopyFolder) -> str:
        """Like the name of an object; marks and locks are named after it."""
        parts = copy.path.relative_to(self.path.parent if self.per_node else self.path).parts
        return f"server/{os.getuid()}-{self.server['key']}-{'-'.join(parts)}"

    @property
    def per_node(self) -> bool:
        return bool(self.server["scope"] == "node")

    def prepare(self) -> None:
        """Make the folders, for this user alone."""
        self.path.parent.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self.path.parent, self.path):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o700)
        self.leases.mkdir(exist_ok=True)
        for copy in self.copies():
            copy.logs.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Only one may start copies at a time."""
        with (self.path / "start.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def token(self) -> str:
        """The token of this server; made here when there is none."""
        try:
            return self.token_file.read_text(encoding="utf-8")
        except FileNotFoundError:
            token = binascii.hexlify(os.urandom(16)).decode("ascii")
            write_private(self.token_file, token)
            return token

    def users(self, now: float) -> list[dict[str, Any]]:
        """Who uses it: what each fresh lease says, with its `name`. Leases that ran out long ago
        are removed. `now` is a time of the file system's clock (`Renewal.now`)."""
        found = []
        for path in sorted(self.leases.glob("*")):
            age = now - modified(path)
            if age <= lease_seconds():
                found.append({**read_json(path), "name": path.name})
            elif age > 10 * lease_seconds():
                with suppress(FileNotFoundError):
                    path.unlink()
        return found


class LeaseRenewal:
    """A lease, renewed by a thread until it is given back.

    Its times are those of the file system's clock, so that nodes whose clocks differ agree.
    """

    def __init__(self, path: Path, says: Mapping[str, Any]) -> None:
        self.path = path
        self._says = {"host": os.uname().nodename, "pid": os.getpid(), **says}
        self._offset = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Take the lease, and renew it from here on."""
        self._stop.clear()
        self.renew()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def renew(self) -> None:
        """Once."""
        try:
            os.utime(str(self.path))
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.path, self._says)
        self._offset = modified(self.path) - time.monotonic()

    def now(self) -> float:
        """The file system's time, as far as this process knows."""
        return time.monotonic() + self._offset

    def end(self, keep: bool = False) -> None:
        """Give it back; with `keep` somebody else renews it from now on."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if not keep:
            with suppress(FileNotFoundError):
                self.path.unlink()

    def _run(self) -> None:
        while not self._stop.wait(lease_seconds() / _RENEWALS):
            # A file system that does not answer for a moment must not end the thread.
            with suppress(OSError):
                self.renew()


def modified(path: Path) -> float:
    """When a file was written last; 0.0 for none. Opening it makes a network file system ask its
    server, where `stat` alone may be answered from a cache."""
    try:
        with path.open("rb") as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return 0.0


def write_private(path: Path, text: str) -> None:
    """Written whole, and never readable by others."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()
    descriptor = os.open(str(draft), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
    draft.replace(path)
