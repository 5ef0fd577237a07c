"""What attempts are aimed at: a file, a folder, a process with a token, and sockets that listen.
They know afterwards whether somebody was there."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

CANARY = "canary-of-the-host"


@dataclass(slots=True)
class Victims:
    """`facts` are what attempts are told. `heard` counts connections and datagrams."""

    folder: Path
    process: subprocess.Popen[bytes]
    token: str
    facts: dict[str, object]
    heard: list[str] = field(default_factory=list)

    def harm(self) -> list[str]:
        """What has happened to them, in words."""
        found = [f"heard {what}" for what in self.heard]
        if self.process.poll() is not None:
            found.append("the process is dead")
        names = sorted(path.name for path in self.folder.iterdir())
        if names != ["open.txt", "secret.txt", "socket"]:
            found.append(f"the folder holds {names}")
        if (self.folder / "open.txt").read_text() != CANARY:
            found.append("a file has changed")
        if (self.folder / "open.txt").stat().st_mode & 0o7777 != 0o666:
            found.append("a file's rights have changed")
        for place in ("/tmp", "/dev/shm"):
            found += [str(path) for path in Path(place).glob(f"*-{self.token}*")]
        return found


@contextmanager
def victims(judge: int) -> Iterator[Victims]:
    """All of it may be read, written and reached by everybody: the box alone stands before it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)
        for path in (folder / "secret.txt", folder / "open.txt"):
            path.write_text(CANARY)
            path.chmod(0o666)
        token = folder.name
        process = subprocess.Popen(
            [sys.executable, "-c", "input()", CANARY],
            stdin=subprocess.PIPE,
            env={"AGENTC_TOKEN": CANARY},
        )
        named, abstract = str(folder / "socket"), "\0" + token
        listeners = [
            socket.create_server(("127.0.0.1", 0)),
            _bound(socket.AF_UNIX, socket.SOCK_STREAM, named),
            _bound(socket.AF_UNIX, socket.SOCK_STREAM, abstract),
            _bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        ]
        Path(named).chmod(0o777)
        facts: dict[str, object] = {
            "FILE": str(folder / "secret.txt"),
            "FOLDER": str(folder),
            "TOKEN": token,
            "VICTIM": process.pid,
            "JUDGE": judge,
            "PORT": listeners[0].getsockname()[1],
            "DATAGRAMS": listeners[3].getsockname()[1],
            "SOCKET": named,
            "ABSTRACT": abstract,
            "OPENAT2": bytes(24),
        }
        found = Victims(folder, process, token, facts)
        for listener in listeners:
            threading.Thread(target=_hear, args=(listener, found.heard), daemon=True).start()
        try:
            yield found
        finally:
            process.kill()
            process.wait()
            for listener in listeners:
                listener.close()


def _bound(family: int, kind: int, address: object) -> socket.socket:
    made = socket.socket(family, kind)
    made.bind(address)  # type: ignore[arg-type]
    if kind == socket.SOCK_STREAM:
        made.listen()
    return made


def _hear(listener: socket.socket, heard: list[str]) -> None:
    with suppress(OSError):
        while True:
            if listener.type == socket.SOCK_DGRAM:
                listener.recv(1)
            else:
                listener.accept()[0].close()
            heard.append(f"{listener.family.name} {listener.type.name}")
