"""Where the logs of jobs and of their servers are, and the text of a log as it grows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from agentc.plan.work import Document, object_of
from agentc.program.artifact_files import STEP_LOG_FILE
from agentc.runtime.machine.output_filters import printable
from agentc.runtime.servers.shared_server_files import ServerFolder
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.staging import attempt_begins

_LOG = "log.txt"
_PAUSE_S = 0.5


def logs_folder(layout: StoreLayout, name: str) -> Path:
    """Of an object: in the object once it is published, until then where it is made."""
    made = layout.object(name) if layout.is_published(name) else layout.staging(name)
    return made / "logs"


def job_log(layout: StoreLayout, job: Mapping[str, Any]) -> Path:
    """The log of a job's program, which need not exist yet."""
    return logs_folder(layout, object_of(job)) / _LOG


def program_logs(
    layout: StoreLayout, job: Mapping[str, Any], *, whole: bool = False
) -> tuple[LogFile, ...]:
    """What a job's program prints, and the steps that a training logs."""
    log = LogFile(lambda: job_log(layout, job), whole=whole)
    steps = LogFile(lambda: job_log(layout, job).with_name(STEP_LOG_FILE), words=step_words)
    return (log, steps)


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


class LogFile:
    """A log that may grow: `read` gives what was added since the last time. Publishing moves the
    file, which stays open here."""

    def __init__(
        self,
        find: Callable[[], Path],
        *,
        whole: bool = False,
        words: Callable[[str], str] = lambda line: line,
    ) -> None:
        """`find` gives the path, which may change until the file is there. `whole`: from the first
        attempt of the job on, not from the latest. `words` gives a line another form."""
        self._find, self._whole, self._words = find, whole, words
        self._file: BinaryIO | None = None
        self._rest = b""

    def read(self, *, last: bool = True) -> str:
        """Safe to print; whole lines, and what comes after them where it is the `last` time.
        Raises OSError; of a file that does not exist yet there is nothing."""
        if self._file is None and not self._open():
            return ""
        assert self._file is not None
        lines = (self._rest + self._file.read()).splitlines(keepends=True)
        whole = last or not lines or lines[-1].endswith(b"\n")
        self._rest = b"" if whole else lines.pop()
        shown = (self._words(line.decode("utf-8", "replace")) for line in lines)
        return printable("".join(shown))

    def _open(self) -> bool:
        path = self._find()
        try:
            self._file = path.open("rb")
        except FileNotFoundError:
            return False
        # Of a published log all is one attempt, as far as anybody knows.
        self._file.seek(0 if self._whole or path.name != _LOG else attempt_begins(path))
        return True


def step_words(line: str) -> str:
    """A line of a training's log of steps: `step 3: loss 2.905, lr 0.0009045, ...`."""
    try:
        values = json.loads(line)
        step = values.pop("step")
    except (ValueError, KeyError, AttributeError, TypeError):
        return line
    numbers = {name: value for name, value in values.items() if isinstance(value, (int, float))}
    first = {name: numbers.pop(name) for name in ("loss", "reward") if name in numbers}
    parts = [f"{name} {value:.4g}" for name, value in {**first, **numbers}.items()]
    return f"step {step}: {', '.join(parts)}\n"


def growing_text(
    logs: Sequence[LogFile], ended: Callable[[], bool] = lambda: True
) -> Iterator[str]:
    """The texts of logs, and what is added to them until `ended` is true. Raises OSError."""
    while True:
        last = ended()  # before the read: nothing that it wrote is missed
        yield from filter(None, [log.read(last=last) for log in logs])
        if last:
            return
        time.sleep(_PAUSE_S)
