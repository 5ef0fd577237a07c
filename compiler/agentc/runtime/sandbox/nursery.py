"""A box whose interpreter is started once and forked for each job: its start is most of the cost.

Everything of a box holds of each child: it is locked down by the same filter before it runs a line
of a model's, and gone before the next one is made. What children share is the box around them, in
which nothing can be written, and their parent (`boxed_nursery.py`), which never reads a job.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import select
import signal
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentc.program.seccomp import UnknownMachineError, child_filter_program
from agentc.runtime.sandbox.boxes import CodeBox
from agentc.runtime.sandbox.process import (
    BoxedLimits,
    BoxedProcess,
    BoxError,
    LateError,
    TooLongError,
    _Clocks,
    one_way,
    readable,
)

_FOR_EVER_S = 10**8
"""Of processor time: it only waits. Each child has its own limit."""
_START_S = 60.0
_END_S = 60.0
_USUALLY_S = 0.005
"""In which a child has said all and is gone, mostly."""
_MOMENT_S = 0.01
"""In which one that has said all is gone, mostly: to find and kill it costs more than to wait."""
_CHUNK = 65536
_READY = b"ready"


class BoxNursery:
    """Ends with the thread that made it; any thread may use it, for one child at a time. Raises
    BoxError where it cannot be started, or its kernel does not say who is whose child."""

    def __init__(self, box: CodeBox, program: str, memory_mb: int = 512) -> None:
        self.box, self.memory_mb = box, memory_mb
        theirs, self._jobs = one_way()
        self._told, say = one_way()
        self.broken, self._over = False, False
        own: tuple[int, ...] = ()
        try:
            own = _out_of_the_way(theirs), _out_of_the_way(say)
            data = {"jobs": own[0], "told": own[1], "filter": child_filter_program()}
            limits = BoxedLimits(memory_mb=memory_mb, seconds=_FOR_EVER_S)
            self._parent = BoxedProcess(box, program, data, limits, _nursery(), own)
            self._check()
            self._both = select.poll()
            self._both.register(self._parent.answers, select.POLLIN)
            self._both.register(self._told, select.POLLIN)
        except UnknownMachineError as error:
            raise BoxError(str(error)) from None
        except BaseException:
            os.close(self._jobs)
            os.close(self._told)
            raise
        finally:
            for descriptor in (theirs, say, *own):
                os.close(descriptor)

    def __enter__(self) -> BoxNursery:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self, data: Any, limits: BoxedLimits) -> ForkedProcess:
        """A child with that data and limits, of memory at most the nursery's. Raises BoxError."""
        try:
            self._fork(data, limits)
            return ForkedProcess(self, self._parent)
        except OSError as error:
            self.broken = True
            raise BoxError(f"the nursery has ended: {error}") from None
        except BaseException:
            self.broken = True
            raise

    def _check(self) -> None:
        """What is needed to know a child by."""
        if not (hasattr(os, "pidfd_open") and _children_file(self._parent.pid).exists()):
            self._parent.end()
            self._over = True
            raise BoxError("nothing here says which process is whose child")

    def end(self) -> None:
        """Kill it, and wait until nothing of it is there. Raises BoxError where something is."""
        if self._over:
            return
        self.broken, self._over = True, True
        os.close(self._jobs)
        os.close(self._told)
        self._parent.end()

    def __del__(self) -> None:
        """With its thread, at the latest."""
        if hasattr(self, "_parent"):
            with suppress(BoxError, OSError):
                self.end()

    def ended(self, seconds: float = 0.0) -> bool:
        """Whether the child is gone within the time, by itself or not."""
        return readable(self._told, seconds)

    def more(self, seconds: float) -> bytes | None:
        """What the child said within the time; none once it is gone and all was read."""
        ready = [descriptor for descriptor, _ in self._both.poll(int(seconds * 1000) + 1)]
        if not ready:
            return None
        # What it said comes before what is said of its end.
        if self._parent.answers in ready or readable(self._parent.answers, 0):
            return os.read(self._parent.answers, _CHUNK)
        return b""

    def clear(self, child: int | None) -> None:
        """Kill the child, by its descriptor; return when nothing of it is left, nor of what it
        said."""
        if child is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(child, signal.SIGKILL)
            os.close(child)
        if not readable(self._told, _END_S):
            self.broken = True
            raise BoxError("a child of the nursery would not end")
        self.broken = self.broken or os.read(self._told, 1) != b"g"
        while not self.broken and readable(self._parent.answers, 0):
            self.broken = not os.read(self._parent.answers, _CHUNK)

    def _fork(self, data: Any, limits: BoxedLimits) -> None:
        """Returns when the new child has read its data and is locked down."""
        memory = min(limits.memory_mb, self.memory_mb) << 20
        text = marshal.dumps({"data": data, "seconds": limits.seconds, "memory": memory}, 2)
        _write(self._jobs, b"j" + len(text).to_bytes(8, "little") + text)
        # Most have ended in a moment: their lines are read at once then, not as they come.
        self.ended(_USUALLY_S)
        try:
            line = self._parent.line(_START_S, _START_S, len(_READY))
        except (LateError, TooLongError):
            line = None
        if line != _READY:
            raise BoxError("a child of the nursery did not start")


class ForkedProcess(BoxedProcess):
    """A child of a nursery, as long as it is a context. Which process it is, is asked once it is
    to be measured or killed: most are gone before."""

    def __init__(self, nursery: BoxNursery, parent: BoxedProcess) -> None:
        # Its first lines may have come with the one that it is ready.
        self._held, parent._held = parent._held, b""
        self._nursery = nursery
        self._inner: int | None = None
        self._pid = self._parent_pid = parent.pid

    def running(self) -> bool:
        return not self._nursery.ended()

    def end(self) -> None:
        if not self._nursery.ended(_MOMENT_S):
            self._find()
        inner, self._inner = self._inner, None
        self._nursery.clear(inner)

    def _clocks(self) -> _Clocks:
        self._find()
        return super()._clocks()

    def _find(self) -> None:
        """The process, while it is there."""
        child = None if self._inner is not None else _child_of(self._parent_pid)
        if child is None:
            return
        with suppress(OSError):
            self._inner = os.pidfd_open(child)
        # While it is its parent's, the number is nobody else's.
        if self._inner is not None and _child_of(self._parent_pid) == child:
            self._pid = child
        elif self._inner is not None:
            os.close(self._inner)
            self._inner = None

    def _more(self, seconds: float) -> bytes | None:
        return self._nursery.more(seconds)


def _child_of(pid: int) -> int | None:
    """The only child of a process of one thread; None once it is gone."""
    found = _children_file(pid).read_text(encoding="ascii").split()
    return int(found[0]) if found else None


def _children_file(pid: int) -> Path:
    return Path(f"/proc/{pid}/task/{pid}/children")


def _write(descriptor: int, text: bytes) -> None:
    view = memoryview(text)
    while view:
        view = view[os.write(descriptor, view) :]


def _out_of_the_way(descriptor: int) -> int:
    """The same, with a number that nothing else has in the box."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 8)


@lru_cache(maxsize=1)
def _nursery() -> str:
    """What the nursery runs."""
    return Path(__file__).with_name("boxed_nursery.py").read_text(encoding="utf-8")
