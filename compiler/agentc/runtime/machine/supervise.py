"""Supervisor: one loop that waits for children, signals and deadlines, without threads.

It starts every process of a job, reaps all of them (adopted orphans too), copies their output
with secrets removed, and ends what is left.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from agentc.runtime.machine import process
from agentc.runtime.machine.output_filters import REPLACEMENT, Redactor
from agentc.runtime.machine.process import STOPPING, StoppedError
from agentc.runtime.store.object_lock import Heartbeat


class Child:
    """A started program, leader of its own process group. `status` is its exit status (negative:
    the signal that ended it) once it has ended."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.pid = popen.pid
        self.log = log
        self.status: int | None = None
        self.cpu_s = 0.0
        self.max_rss_mb = 0.0
        self.copy: _OutputCopy | None = None
        self.when_ended: list[Callable[[], None]] = []
        """What the supervisor calls once it has ended the child and its group."""
        self._popen = popen

    def measure(self) -> None:
        """Note what its whole group has used so far. Of what is killed and not waited for, as the
        workers of a server, the kernel tells nothing in the end."""
        if process.signal_group(self.pid, 0):
            cpu_s, peak_mb = process.group_usage(self.pid)
            self.cpu_s = max(self.cpu_s, cpu_s)
            self.max_rss_mb = max(self.max_rss_mb, peak_mb)

    def ended(self, status: int) -> None:
        self.status = status
        # Popen must not wait for a process that the supervisor reaped.
        self._popen.returncode = status


class Supervisor:
    """Children of this wrapper. Use as a context manager: leaving it ends all of them."""

    def __init__(self, mark: str, redactor: Redactor, keeper: Heartbeat | None = None) -> None:
        self.mark = mark
        self._keeper = keeper
        self.redactor = redactor
        self.children: list[Child] = []
        self.received: int | None = None
        self._raising = False
        self._by_pid: dict[int, Child] = {}
        self._previous: dict[int, object] = {}
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._watchdog: process.Watchdog | None = None

    def __enter__(self) -> Supervisor:
        process.adopt_orphans()
        self._watchdog = process.Watchdog(self.mark, self._keeper)
        for number in (*STOPPING, signal.SIGCHLD):
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # started under nohup
            self._previous[number] = signal.signal(number, self._note)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.end_all()
        finally:
            # A server's host that is started between two attempts has to outlive this process.
            process.leave_orphans()
            signal.set_wakeup_fd(-1)
            for number, handler in self._previous.items():
                signal.signal(number, handler)  # type: ignore[arg-type]
            if self._watchdog is not None:
                self._watchdog.dismiss()
            os.close(self._read)
            os.close(self._write)

    def start(
        self, name: str, argv: Sequence[str], *, cwd: Path, variables: Mapping[str, str], log: Path
    ) -> Child:
        """Start a program whose output goes to the end of `log`. Raises OSError."""
        environment = dict(variables)
        environment[process.MARK_VARIABLE] = self.mark
        file = os.open(str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        copy: _OutputCopy | None = None
        try:
            output = file
            if self.redactor.secrets:
                read, output = os.pipe()
                copy = _OutputCopy(read, os.dup(file), self.redactor)
            try:
                popen = process.start(argv, cwd=str(cwd), environment=environment, output=output)
            finally:
                if copy is not None:
                    os.close(output)
        finally:
            os.close(file)
        child = Child(name, popen, log)
        child.copy = copy
        self.children.append(child)
        self._by_pid[child.pid] = child
        return child

    def wait(
        self, until: Callable[[], bool], timeout: float | None = None, every: float = 0.5
    ) -> bool:
        """Wait until the condition holds; it is asked after every event and every `every`
        seconds. False after `timeout` seconds. Raises StoppedError when told to stop."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._reap()
            if self.received is not None:
                raise StoppedError(self.received)
            if until():
                return True
            remaining = every
            if deadline is not None:
                remaining = min(every, deadline - time.monotonic())
                if remaining <= 0:
                    return False
            self._sleep(remaining)

    def end(self, children: Sequence[Child], grace: float = 5.0) -> None:
        """End these children and their groups: TERM, up to `grace` seconds, KILL. Signals that
        arrive meanwhile are noted and do not cut it short."""
        alive = {each.pid for each in children if process.signal_group(each.pid, 0)}
        shared = process.mapped_by(alive) if alive else set()
        for child in children:
            child.measure()
            process.signal_group(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and self._alive(children):
            self._sleep(0.05)
        number_of_tries = 0
        while self._alive(children) and number_of_tries < 200:
            for child in children:
                process.signal_group(child.pid, signal.SIGKILL)
            number_of_tries += 1
            self._sleep(0.02)
        for child in children:
            if child.copy is not None:
                child.copy.finish()
                child.copy = None
            while child.when_ended:
                child.when_ended.pop()()
        process.remove_unused(shared)

    def end_all(self, grace: float = 5.0) -> None:
        """End every child, and every process that descends from one."""
        self.end(self.children, grace)
        # As the adoptive parent we see each orphan sooner or later: repeat until none is left.
        for _ in range(500):
            self._reap()
            left = process.children()
            if self._watchdog is not None:
                left.discard(self._watchdog.pid)
            if not left:
                return
            for pid in left:
                process.signal_group(pid, signal.SIGKILL)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._sleep(0.02)

    def _alive(self, children: Sequence[Child]) -> bool:
        self._reap()
        return any(child.status is None or process.signal_group(child.pid, 0) for child in children)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within this block a signal to stop raises StoppedError at once, also out of a wait for
        something else than this supervisor's children."""
        if self.received is not None:
            raise StoppedError(self.received)
        self._raising = True
        try:
            yield
        finally:
            self._raising = False

    def _note(self, number: int, frame: object) -> None:
        if number in STOPPING and self.received is None:
            self.received = number
            if self._raising:
                self._raising = False
                raise StoppedError(number)

    def _sleep(self, seconds: float) -> None:
        """Sleep until a signal, some output to copy, or the time is over."""
        copies = [c.copy for c in self.children if c.copy is not None and not c.copy.closed]
        sources: list[Any] = [self._read, *copies]
        ready, _, _ = select.select(sources, [], [], max(0.0, seconds))
        for source in ready:
            if isinstance(source, _OutputCopy):
                source.pump()
            else:
                with suppress(BlockingIOError):
                    os.read(self._read, 4096)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self._watchdog is not None and pid == self._watchdog.pid:
                # Somebody killed it: claims would go stale.
                self._watchdog.dismiss()
                self._watchdog = process.Watchdog(self.mark, self._keeper)
            child = self._by_pid.get(pid)
            if child is not None:
                child.cpu_s = max(child.cpu_s, usage.ru_utime + usage.ru_stime)
                child.max_rss_mb = max(child.max_rss_mb, usage.ru_maxrss / 1024.0)
                child.ended(
                    -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                )


class _OutputCopy:
    """Copies a pipe to a log with secrets replaced, also those that arrive in parts."""

    def __init__(self, read: int, write: int, redactor: Redactor) -> None:
        os.set_blocking(read, False)
        self._pipe, self._log, self._redactor = read, write, redactor
        self._held = b""
        self.closed = False

    def fileno(self) -> int:
        return self._pipe

    def pump(self) -> None:
        """Copy what has arrived."""
        while not self.closed:
            try:
                chunk = os.read(self._pipe, 65536)
            except BlockingIOError:
                return
            if not chunk:
                self.finish()
                return
            ready, self._held = self._redactor.split(self._held + chunk)
            self._write(ready)

    def finish(self) -> None:
        """Copy the rest and close both ends."""
        if self.closed:
            return
        self.closed = True
        try:
            while True:
                chunk = os.read(self._pipe, 65536)
                if not chunk:
                    break
                self._held += chunk
        except BlockingIOError:
            pass
        ready, rest = self._redactor.split(self._held)
        self._write(ready)
        # Cut off in the middle of what may have been a secret: its beginning is worth guarding.
        self._write(REPLACEMENT if len(rest) > 3 else rest)
        os.close(self._pipe)
        os.close(self._log)

    def _write(self, text: bytes) -> None:
        if text:
            os.write(self._log, text)
