"""One browser in its box: its start, the thread of orders to it, its end.

Neighbours: `box.py` (the command), `devtools.py` (what is said), `render.py`, whose it is.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import time
from contextlib import suppress

from agentc.runtime.browser.box import (
    NAMESPACES,
    BrowserBox,
    NoBrowserError,
    command,
    environment,
    find_box,
    refusal,
)
from agentc.runtime.browser.devtools import (
    BrowserEndError,
    Devtools,
    DevtoolsError,
    LateReplyError,
)
from agentc.runtime.browser.tree import TreeUse, use_of_tree
from agentc.runtime.sandbox.process import child_pid

_START_S, _END_S = 120.0, 60.0
_CHUNK, _SHOWN = 65536, 400
_ORDERS, _ANSWERS, _INFO, _ABOVE = 3, 4, 5, 16


class UseExceededError(Exception):
    """It took more memory, or more processor time, than a page may."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class BoxedBrowser:
    """Raises NoBrowserError where it does not start. One thread's; `end` it."""

    def __init__(self, box: BrowserBox, memory_mb: int) -> None:
        self.box = box
        self._memory = memory_mb << 20
        self._until_spent: float | None = None
        # What the browser is given lies above the numbers that it wants them to have.
        theirs, self._orders = _pipe(theirs=0)
        answers, self._answers = _pipe(theirs=1)
        info, told = _pipe(theirs=1)
        complaint = os.memfd_create("complaint")
        said = fcntl.fcntl(complaint, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
        words = command(box, _INFO)
        given = ((said, 2), (theirs, _ORDERS), (answers, _ANSWERS), (info, _INFO))
        try:
            # By hand, for `subprocess` gives no descriptor another number.
            self._pid = os.posix_spawn(
                words[0],
                words,
                environment(),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    *((os.POSIX_SPAWN_DUP2, ours, number) for ours, number in given),
                ],
                setsid=True,
            )
        finally:
            for ours, _ in given:
                os.close(ours)
        self._inner: int | None = None
        self._reaped = False
        """Whether it was waited for: its number may be somebody else's from then on."""
        self.devtools = Devtools(self._orders, self._answers, self._watch)
        try:
            self._await_start(told)
        except (BrowserEndError, LateReplyError, DevtoolsError):
            text = os.pread(complaint, _CHUNK, 0).decode("utf-8", "replace").strip()
            self.end()
            last = text.splitlines()[-1][:_SHOWN] if text else "it does not answer"
            remedy = {"remedy": NAMESPACES} if "namespace" in text else {}
            raise NoBrowserError(refusal(f"it does not start: {last}", **remedy)) from None
        finally:
            os.close(told)
            os.close(complaint)

    def answers(self) -> bool:
        """Whether it still does."""
        self.allow(None)
        try:
            self.devtools.call("Browser.getVersion", until=time.monotonic() + _END_S)
        except (BrowserEndError, LateReplyError, DevtoolsError):
            return False
        return True

    def allow(self, seconds: float | None) -> None:
        """As much processor time from now on, and its memory; None: no limit is watched."""
        self._until_spent = None if seconds is None else self.use().seconds + seconds

    def use(self) -> TreeUse:
        """Of all its processes."""
        return use_of_tree(self._pid)

    def end(self) -> None:
        """Kill it, and wait until nothing of it is there."""
        if self._inner is not None:
            # The first process of its namespace takes all others along.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inner, signal.SIGKILL)
            os.close(self._inner)
            self._inner = None
            self._await_end(_END_S)
        if not self._reaped:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            self._reaped = True
        self.devtools.close()

    def _await_end(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        try:
            while not self._reaped and time.monotonic() < until:
                self._reaped = os.waitpid(self._pid, os.WNOHANG)[0] != 0
                if not self._reaped:
                    time.sleep(0.005)
        except ChildProcessError:
            self._reaped = True

    def _await_start(self, told: int) -> None:
        until = time.monotonic() + _START_S
        text = b""
        while b"}" not in text:
            poll = select.poll()
            poll.register(told, select.POLLIN)
            ready = poll.poll(int(max(0.0, until - time.monotonic()) * 1000))
            chunk = os.read(told, _CHUNK) if ready else b""
            if not chunk:
                raise BrowserEndError
            text += chunk
        with suppress(AttributeError, OSError):  # Python 3.8, or it has ended
            self._inner = os.pidfd_open(child_pid(text))
        self.version = str(self.devtools.call("Browser.getVersion", until=until)["product"])

    def _watch(self) -> None:
        if self._until_spent is None:
            return
        used = self.use()
        if used.memory > self._memory:
            raise UseExceededError("memory")
        if used.seconds > self._until_spent:
            raise UseExceededError("time")


def _pipe(theirs: int) -> tuple[int, int]:
    """The end that a process is to be given, numbered above those it may ask for, and ours.
    `theirs`: 0 reads, 1 writes."""
    both = os.pipe()
    high = fcntl.fcntl(both[theirs], fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    os.close(both[theirs])
    return high, both[1 - theirs]


def start_browser(box: BrowserBox | None = None, memory_mb: int = 2048) -> BoxedBrowser:
    """With Chromium's own sandbox inside the box where that works. Raises NoBrowserError."""
    found = box or find_box()
    try:
        return BoxedBrowser(found, memory_mb)
    except NoBrowserError:
        if not found.inner:
            raise
        return BoxedBrowser(found._replace(inner=False), memory_mb)
