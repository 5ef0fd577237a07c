"""Where the logs of jobs and of their servers are, and the text of a log as it grows."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.plan.work import Document, object_of
from agentc.runtime.machine.output_filters import printable
from agentc.runtime.servers.shared_server_files import ServerFolder
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.staging import attempt_begins

_LOG = "log.txt"
_PAUSE_S = 0.5
_CHUNK_BYTES = 1 << 20


def logs_folder(layout: StoreLayout, name: str) -> Path:
    """Of an object: in the object once it is published, until then where it is made."""
    made = layout.object(name) if layout.is_published(name) else layout.staging(name)
    return made / "logs"


def job_log(layout: StoreLayout, job: Mapping[str, Any]) -> Path:
    """The log of a job's program, which need not exist yet."""
    return logs_folder(layout, object_of(job)) / _LOG


@dataclass(frozen=True, slots=True)
class ServerLog:
    """The log of a server that a job uses, by the name of its file without the ending."""

    name: str
    path: Path


def server_logs(
    layout: StoreLayout, document: Document, job: Mapping[str, Any]
) -> tuple[ServerLog, ...]:
    """Logs of the servers of a job: its own, those of its session, and shared ones."""
    names = [object_of(job)]
    names += [
        f"session/{session['key']}"
        for session in document.get("sessions") or []
        if job["id"] in session["members"]
    ]
    paths = [path for name in names for path in sorted(logs_folder(layout, name).glob("*.log"))]
    shared = {str(lease.get("server") or "") for lease in job["leases"]}
    for server in document.get("servers") or []:
        if str(server["id"]) in shared:
            for copy in ServerFolder(layout, server).copies():
                paths += sorted(copy.logs.glob("*.log"))
    return tuple(ServerLog(path.stem, path) for path in paths)


def begins(log: Path) -> int:
    """The byte where the last attempt in a job's log begins; of another log, and of a published
    one, that is its first."""
    return attempt_begins(log) if log.name == _LOG else 0


def text_of(log: Path, start: int, ended: Callable[[], bool] | None = None) -> Iterator[str]:
    """The text of a log from a byte on, safe to print. With `ended` also what is written later,
    until that is true and all is read; a log that does not exist yet is waited for. Publishing
    moves the file, which stays open here. Raises OSError."""
    while ended is not None and not log.exists() and not ended():
        time.sleep(_PAUSE_S)
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    with log.open("rb") as file:
        file.seek(start)
        while True:
            last = ended is None or ended()  # before the read: nothing that it wrote is missed
            while chunk := file.read(_CHUNK_BYTES):
                yield printable(decode(chunk))
            if last:
                return
            time.sleep(_PAUSE_S)
