"""Trackers of a run: the program of each, started when the run begins and ended when it is over.

A tracker's process has a session of its own, so that Ctrl-C reaches it as the end of its input: it
then writes what is new and leaves. Whatever happens to one, the run continues; what it missed,
`agentc track` writes later.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO

from agentc.runtime.machine import process
from agentc.runtime.machine.output_filters import Redactor
from agentc.runtime.software import job_software
from agentc.runtime.software.job_software import SoftwareError
from agentc.runtime.store.layout import StoreLayout
from agentc.software.build import build_all
from agentc.tracking.choice import ChosenTracker

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
    """`say` receives what it tells people, from a thread. Raises SoftwareError where it
    cannot be started."""

    def __init__(
        self, chosen: ChosenTracker, followed: Followed, report: Callable[[str], None]
    ) -> None:
        self._log = followed.log(chosen.tracker.id)
        layout = followed.layout
        directory, record = job_software.ensure_software(
            layout, chosen.needed.sha256, chosen.needed.lock
        )
        code = job_software.code_directory(layout, [chosen.tracker.program])
        command = job_software.python_command(directory, record, layout.root, code)
        secrets = job_software.resolve_secrets(chosen.secrets, sent=True)
        # None of its own may ever be written down, in its log neither.
        self._redactor = Redactor(secrets.values())
        variables = job_software.job_variables(
            code, _CPUS, False, secrets, job_software.programs_of(directory, record)
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
            threading.Thread(target=self._listen, args=(self._process.stdout, report), daemon=True),
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

    def _listen(self, lines: IO[bytes], report: Callable[[str], None]) -> None:
        for line in lines:
            report(self._redactor.clean(line).decode("utf-8", "replace").rstrip())

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


PATIENCE_S = 60.0
"""So long a run waits at its end for a tracker that still writes."""
_POLL_S = 0.2


class Trackers:
    """Those of one run; each is served by a thread. `patience` is how long, in seconds, one may
    write on after the run is over; None: as long as it likes."""

    def __init__(
        self,
        chosen: Sequence[ChosenTracker],
        followed: Followed,
        patience: float | None = PATIENCE_S,
    ) -> None:
        self._followed, self._patience = followed, patience
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._over = threading.Event()
        self._given_up = threading.Event()
        self._failed: list[str] = []
        self._threads = [
            threading.Thread(target=self._serve, args=(one,), daemon=True) for one in chosen
        ]
        for thread in self._threads:
            thread.start()

    def news(self) -> list[str]:
        """What they said since the last call."""
        found = []
        while True:
            try:
                found.append(self._lines.get_nowait())
            except Empty:
                return found

    def finish(self) -> Iterator[str]:
        """Let them write what is new, and end; yields what they say until then. Whoever is
        interrupted meanwhile (Ctrl-C) leaves them to end by themselves."""
        self._over.set()
        try:
            while any(thread.is_alive() for thread in self._threads):
                time.sleep(_POLL_S)
                yield from self.news()
        except BaseException:
            self._given_up.set()
            raise
        yield from self.news()

    @property
    def failed(self) -> tuple[str, ...]:
        """Those that did not get to their end."""
        return tuple(self._failed)

    def _serve(self, one: ChosenTracker) -> None:
        name = one.tracker.id
        try:
            self._build(one)
            program = TrackerProcess(one, self._followed, lambda line: self._report(name, line))
        except (SoftwareError, OSError) as error:
            self._fail(name, str(error).partition("\n")[0])
            return
        while program.ended() is None and not self._over.wait(_POLL_S):
            pass
        program.finish()
        status = program.wait(self._patience)
        if status is None:
            program.kill()
            self._fail(name, f"it was still writing {self._patience:.0f} s after the run's end")
        elif status != 0:
            self._fail(name, f"{program.last_words()} (log: {program.log})")

    def _build(self, one: ChosenTracker) -> None:
        layout = self._followed.layout
        if one.needed.ready(layout):
            return
        self._report(one.tracker.id, "its software stack is being built (once for all)")
        secrets = one.secrets.values()
        build_all([one.needed], layout, lambda *_: None, stop=self._given_up, withheld=secrets)

    def _fail(self, name: str, why: str) -> None:
        self._failed.append(name)
        if self._patience is None:
            self._report(name, f"failed: {why}")  # nothing goes on
            return
        later = f"`agentc track {self._followed.label} --to {name}` writes what is missing"
        self._report(name, f"failed, and the run continues without it: {why}; {later}")

    def _report(self, name: str, text: str) -> None:
        self._lines.put(f"{name}: {text}")


@contextmanager
def trackers_beside(
    chosen: Sequence[ChosenTracker], followed: Followed, tell: Callable[[str], None]
) -> Iterator[Trackers]:
    """Trackers for as long as the block runs, and until they have written what came last."""
    trackers = Trackers(chosen, followed)
    try:
        yield trackers
    finally:
        for line in trackers.finish():
            tell(line)
