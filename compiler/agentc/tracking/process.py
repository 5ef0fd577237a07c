"""TrackerProcess: the program of one tracker, started, listened to, and ended.

It has a session of its own, so that Ctrl-C reaches it as the end of its input: it then writes what
is new and leaves. Neighbour: `attend.py`, all trackers of a run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agentc.runtime.machine import process
from agentc.runtime.machine.redact import Redactor
from agentc.runtime.software import environment
from agentc.runtime.store.layout import StoreLayout
from agentc.tracking.chosen import ChosenTracker

EVERY_S = 1.0
"""Between two looks at a run's files."""
_CPUS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A run to follow: its plan, its label, and the project that it is listed under unless a
    tracker has another."""

    layout: StoreLayout
    plan: Path
    label: str
    project: str

    def log(self, tracker: str) -> Path:
        """Where a tracker's own messages go."""
        return self.layout.root / "runs" / self.label / f"track-{tracker}.log"


class TrackerProcess:
    """`say` receives what it tells people, from a thread. Raises SoftwareEnvironmentError where it
    cannot be started."""

    def __init__(
        self, chosen: ChosenTracker, followed: Followed, say: Callable[[str], None]
    ) -> None:
        self._log = followed.log(chosen.tracker.id)
        layout = followed.layout
        directory, record = environment.ensure_environment(
            layout, chosen.needed.sha256, chosen.needed.lock
        )
        code = environment.code_directory(layout, [chosen.tracker.program])
        command = environment.python_command(directory, record, layout.root, code)
        secrets = environment.resolve_secrets(chosen.secrets, sent=True)
        # None of its own may ever be written down, in its log neither.
        self._redactor = Redactor(secrets.values())
        variables = environment.job_variables(
            code, _CPUS, False, secrets, environment.programs_of(directory, record)
        )
        for name in chosen.tracker.variables:
            if name in os.environ:
                variables[name] = os.environ[name]
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [*command, "-m", chosen.tracker.program],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._listeners = [
            threading.Thread(target=self._listen, args=(self._process.stdout, say), daemon=True),
            threading.Thread(target=self._keep, args=(self._process.stderr,), daemon=True),
        ]
        for listener in self._listeners:
            listener.start()
        self._send(_request(chosen, followed))

    def ended(self) -> int | None:
        """Its exit status, once it has ended."""
        return self._process.poll()

    def finish(self) -> None:
        """Ask it to write what is new, and to end."""
        assert self._process.stdin is not None
        with suppress(OSError):  # where it is gone
            self._process.stdin.close()

    def wait(self, seconds: float | None = None) -> int | None:
        """Its exit status; None where it is still at work after so long."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        for listener in self._listeners:
            listener.join(1.0)
        return status

    def kill(self) -> None:
        """End it as it is, with whatever it has started."""
        process.signal_group(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def last_words(self) -> str:
        """The last line of its log, for people."""
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    @property
    def log(self) -> Path:
        """What its library printed."""
        return self._log

    def _send(self, request: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already, and its status says so
            self._process.stdin.write(json.dumps(request).encode("utf-8") + b"\n")
            self._process.stdin.flush()

    def _listen(self, lines: IO[bytes], say: Callable[[str], None]) -> None:
        for line in lines:
            say(self._redactor.clean(line).decode("utf-8", "replace").rstrip())

    def _keep(self, lines: IO[bytes]) -> None:
        with self._log.open("wb") as log:
            for line in lines:
                log.write(self._redactor.clean(line))
                log.flush()


def _request(chosen: ChosenTracker, followed: Followed) -> Mapping[str, object]:
    project = str(chosen.settings.get("project") or followed.project)
    return {
        "store": str(followed.layout.root),
        "plan": str(followed.plan),
        "label": followed.label,
        "project": project,
        "settings": {**chosen.settings, "project": project},
        "folder": str(followed.layout.root / "tracking" / chosen.tracker.id),
        "every": EVERY_S,
    }
