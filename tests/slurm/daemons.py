"""Daemons of the test cluster as children of this process: started, waited for, stopped, and found
again when the process that started them was killed."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1


class DaemonError(Exception):
    """A daemon does not start; the message has its last words."""


class Daemons:
    """Started processes by name, recorded in `processes.json` of the cluster's folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, name: str, argv: Sequence[str], variables: Mapping[str, str] | None = None
    ) -> None:
        """Start a daemon in the foreground; it gets TERM when this process ends."""
        me = os.getpid()

        def bind_to_parent() -> None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
            if os.getppid() != me:
                os._exit(1)

        with self.log(name).open("ab") as out:
            self._running[name] = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(variables or {})},
                start_new_session=True,
                preexec_fn=bind_to_parent,
            )
        self._record()

    def log(self, name: str) -> Path:
        """What a daemon prints."""
        return self._root / "log" / f"{name}.out"

    def is_running(self, name: str) -> bool:
        """Whether a daemon was started and has not ended."""
        started = self._running.get(name)
        return started is not None and started.poll() is None

    def wait_for(self, name: str, condition: Callable[[], bool], timeout: float) -> None:
        """Wait until the condition holds. Raises DaemonError when the daemon ends or time is
        over."""
        deadline = time.monotonic() + timeout
        while not condition():
            ended = self._running[name].poll()
            if ended is not None or time.monotonic() > deadline:
                why = "is not ready" if ended is None else f"ended with {ended}"
                words = self.log(name).read_text(errors="replace")[-2000:]
                raise DaemonError(f"{name} {why}:\n{words}")
            time.sleep(0.05)

    def stop(self, name: str, number: int = signal.SIGTERM, grace: float = 5.0) -> None:
        """End one daemon, by KILL if it takes too long."""
        process = self._running.pop(name, None)
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._record()

    def stop_all(self) -> None:
        """End all, the last started first."""
        for name in reversed(list(self._running)):
            self.stop(name)

    def _record(self) -> None:
        known = {name: [one.pid, _birth(one.pid)] for name, one in self._running.items()}
        (self._root / "processes.json").write_text(json.dumps(known))


def end_recorded(root: Path) -> None:
    """End daemons of a cluster whose owner was killed, and what their jobs left running."""
    found: set[int] = set()
    with contextlib.suppress(OSError, ValueError):
        for pid, birth in json.loads((root / "processes.json").read_text()).values():
            if _birth(pid) == birth:
                found.add(pid)
    for pid in found | step_processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def step_processes(job: int | None = None) -> set[int]:
    """SLURM's step daemons (of one job, or of all) and all below them: they outlive the daemon of
    their node."""
    title = b"slurmstepd: [" + (b"" if job is None else b"%d." % job)
    steps = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cmdline").read_bytes().startswith(title):
                steps.add(int(entry.name))
    return _below(steps)


def _below(found: set[int]) -> set[int]:
    parents = _parents()
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found = found | more
    return found


def _parents() -> dict[int, int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            parents[int(entry.name)] = int(fields[1])
    return parents


def _birth(pid: int) -> str:
    """When a process was started: its number may be given to another one later."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return ""
