"""One interpreter in a box: its start, the lines that it writes, and its end.

A program is sent as text and may be given data. It writes lines of bytes to one channel; whatever
comes through that channel may be forged. Channels are sockets: a process that may look into another
one's `/proc/PID/fd` can open a pipe there, but no socket (ENXIO). Each box belongs to one thread,
and ends with it at the latest.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from agentc.program import lockdown
from agentc.program.seccomp import UnknownMachineError, filter_program
from agentc.runtime.sandbox.boxes import CodeBox, command, environment, landlock_orders


def one_way() -> tuple[int, int]:
    """The descriptor to read from, and the one to write to. Neither is inherited."""
    reader, writer = socket.socketpair()
    reader.shutdown(socket.SHUT_WR)
    writer.shutdown(socket.SHUT_RD)
    return reader.detach(), writer.detach()


_START_S = 60.0
"""A machine may be that busy. Nothing that models wrote is read before."""
_END_S = 60.0
_CHUNK = 65536
_SHOWN = 400
_SHORTEST_WAIT_S = 0.01
BOUND = {"LD_BIND_NOW": "1"}
"""For a nursery, which takes it out of its variables: what it did not bind each child would."""
_MOMENT_S = 0.005
"""So long a line is waited for before any time is measured: most lines are there sooner."""
_READY = b"ready"
_START = (
    "import marshal, os, sys\n"
    "sys.path[:] = sys.path[1:]\n"
    "parts, orders, data = marshal.loads(open(0, 'rb').read())\n"
    "spaces = [{'__name__': name} for name, _ in parts]\n"
    "for space, (name, text) in zip(spaces, parts):\n"
    "    exec(compile(text, name, 'exec'), space)\n"
    "sys.path += orders['packages']\n"
    "answers = spaces[0]['lock_down'](orders)\n"
    "os.write(answers, b'ready\\n')\n"
    "spaces[1]['spaces'] = spaces\n"
    "spaces[1]['main'](answers, data)\n"
)


class BoxError(Exception):
    """The box did not do its part: it did not start, or would not end. It says nothing about the
    code that was to run in it."""


class LateError(Exception):
    """No line came within the time."""


class TooLongError(Exception):
    """A line had more bytes than were agreed."""


class BoxedLimits(NamedTuple):
    """For one process: `memory_mb` of address space, `seconds` of processor time until the kernel
    ends it, open files."""

    memory_mb: int = 512
    seconds: int = 60
    files: int = 32


class _Clocks(NamedTuple):
    spent: float
    delayed: float
    time: float


class BoxedProcess:
    """Runs the `main(answers, data)` of a program's text, where `answers` is the descriptor that
    takes lines, and `data` is made of numbers, texts, bytes, lists and dicts. Raises BoxError.
    A context, at whose end nothing is left of it."""

    slept = 0.0
    """Seconds of the last line that it neither ran nor was ready to."""

    def __init__(
        self,
        box: CodeBox,
        program: str,
        data: Any,
        limits: BoxedLimits,
        nursery: str | None = None,
        kept: Sequence[int] = (),
    ) -> None:
        """`nursery`: the text of what is run instead, with the program as what it forks; `kept`:
        descriptors, above 3, that it needs (`nursery.py`)."""
        self._held = b""
        told: int | None = None
        say: int | None = None
        parts = [["<lockdown>", _lockdown()], ["<program>", program]]
        if nursery is not None:
            parts.insert(1, ["<nursery>", nursery])
        sent = _in_memory(parts, box, limits, data, kept)
        self._answers, answers = one_way()
        self._complaints, complaints = one_way()
        try:
            if box.kind == "bubblewrap":
                told, say = one_way()
            words = [*command(box, say), box.interpreter.program, "-s", "-S", "-B", "-c", _START]
            self._process = subprocess.Popen(
                words,
                stdin=sent,
                stdout=answers,
                stderr=complaints,
                env={**environment(), **({} if nursery is None else BOUND)},
                cwd="/",
                pass_fds=(*kept, *(() if say is None else (say,))),
                start_new_session=True,
            )
        except OSError as error:
            for descriptor in (told, self._answers, self._complaints):
                if descriptor is not None:
                    os.close(descriptor)
            raise BoxError(f"{box.kind}: {error}") from None
        finally:
            for descriptor in (sent, answers, complaints, say):
                if descriptor is not None:
                    os.close(descriptor)
        self._pid = self._process.pid
        self._inner: int | None = None
        try:
            self._await_start(told)
        except BaseException:
            self.end()
            raise
        finally:
            if told is not None:
                os.close(told)

    def __enter__(self) -> BoxedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def line(self, seconds: float, wall_seconds: float, most: int) -> bytes | None:
        """The next line, without its end; None where the process has ended and said no more.

        Waits for `seconds` of the process's processor time, and `wall_seconds` by the clock, for
        those that wait or sleep; not counted is what it waits for a processor, so that a busy
        machine makes nobody late. What it slept is in `slept`. Raises LateError, and TooLongError
        after `most` bytes.
        """
        began: _Clocks | None = None
        spent = delayed = self.slept = 0.0
        left = _MOMENT_S
        moment = time.monotonic() + _MOMENT_S
        while b"\n" not in self._held:
            if len(self._held) > most:
                raise TooLongError
            if time.monotonic() >= moment:
                now = self._clocks()
                began = began or now
                # Of a process that has ended two of them are 0.
                spent = max(spent, now.spent - began.spent)
                delayed = max(delayed, now.delayed - began.delayed)
                self.slept = max(0.0, now.time - began.time - spent - delayed)
                left = min(seconds - spent, wall_seconds - self.slept)
                # A delay is told when it is over.
                if left <= 0 and (spent >= seconds or not self._is_ready()):
                    raise LateError
            chunk = self._more(max(left, _SHORTEST_WAIT_S))
            if chunk == b"":
                return None
            self._held += chunk or b""
        line, _, self._held = self._held.partition(b"\n")
        if len(line) > most:
            raise TooLongError
        return line

    def _more(self, seconds: float) -> bytes | None:
        """What came within the time; none at the end of all that could come."""
        return os.read(self.answers, _CHUNK) if readable(self.answers, seconds) else None

    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """Kill it, and wait until nothing of it is there. Raises BoxError where something is."""
        late = time.monotonic() + _END_S
        self._kill()
        try:
            # The channel is at its end when the last process is that could write to it.
            while True:
                left = late - time.monotonic()
                if left <= 0 or not readable(self.answers, left):
                    raise BoxError(f"a boxed process ({self._pid}) would not end")
                if not os.read(self.answers, _CHUNK):
                    return
        finally:
            os.close(self._answers)
            os.close(self._complaints)

    def _kill(self) -> None:
        """The inner process first: bubblewrap, which waits for it, then ends by itself. The other
        way round it would be left to process 1, and not each of those looks after what is."""
        if self._inner is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inner, signal.SIGKILL)
            os.close(self._inner)
            self._inner = None
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        """Of the process inside, as the host has it."""
        return self._pid

    @property
    def answers(self) -> int:
        """The channel that its lines come from."""
        return self._answers

    def _await_start(self, told: int | None) -> None:
        if told is not None:
            self._pid = self._inner_process(told)
            with suppress(AttributeError, OSError):  # Python 3.8, or it has ended
                self._inner = os.pidfd_open(self._pid)
        try:
            line = self.line(_START_S, _START_S, len(_READY))
        except LateError:
            raise BoxError(f"the box did not start within {int(_START_S)} s") from None
        except TooLongError:
            line = None
        if line != _READY:
            raise BoxError(f"the box did not start: {self._complaint()}")

    def _inner_process(self, told: int) -> int:
        """bubblewrap waits outside; whose time counts is the process inside."""
        text = b""
        while b"}" not in text:
            chunk = os.read(told, _CHUNK) if readable(told, _START_S) else b""
            if not chunk:
                raise BoxError(f"the box did not start: {self._complaint()}")
            text += chunk
        return child_pid(text)

    def _complaint(self) -> str:
        """What it said last on its standard error, before nothing could be said there."""
        self._process.kill()
        text = b""
        while len(text) < _CHUNK and readable(self._complaints, _END_S):
            more = os.read(self._complaints, _CHUNK)
            if not more:
                break
            text += more
        lines: list[str] = text.decode("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1][:_SHOWN]
        return f"it ended with {self._process.wait()} and printed nothing"

    def _clocks(self) -> _Clocks:
        return _Clocks(self._processor_seconds(), self._delayed_seconds(), time.monotonic())

    def _delayed_seconds(self) -> float:
        """What it was ready and had no processor, as far as the kernel tells."""
        with suppress(OSError, ValueError, IndexError):
            return int(Path(f"/proc/{self._pid}/schedstat").read_bytes().split()[1]) / 1e9
        return 0.0

    def _is_ready(self) -> bool:
        """Whether it runs, or waits for nothing but a processor."""
        with suppress(OSError):
            told = Path(f"/proc/{self._pid}/stat").read_bytes()
            return told.rpartition(b")")[2].split()[:1] == [b"R"]
        return False

    def _processor_seconds(self) -> float:
        """Of the boxed process, by its clock; 0 once it has ended."""
        with suppress(OSError):
            # As clock_getcpuclockid makes the id of a process's clock.
            return time.clock_gettime((~self._pid << 3) | 2)
        return 0.0


def _in_memory(
    parts: list[list[str]], box: CodeBox, limits: BoxedLimits, data: Any, kept: Sequence[int]
) -> int:
    """A file of what `_START` reads. Not a pipe, which would have to be filled while it is read."""
    try:
        orders: dict[str, Any] = {
            "filter": filter_program(nursery=len(parts) > 2),
            "kept": list(kept),
            "landlock": landlock_orders(box),
            "limits": {
                "memory": limits.memory_mb << 20,
                "seconds": limits.seconds,
                "files": limits.files,
            },
            "packages": list(box.interpreter.packages),
            # In a namespace of processes of its own it cannot outlive bubblewrap.
            "parent": os.getpid() if box.kind == "landlock" else None,
        }
    except UnknownMachineError as error:
        raise BoxError(str(error)) from None
    descriptor = os.memfd_create("boxed")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(marshal.dumps([parts, orders, data], 2))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@lru_cache(maxsize=1)
def _lockdown() -> str:
    return Path(lockdown.__file__).read_text(encoding="utf-8")


def child_pid(text: bytes) -> int:
    for word in text.replace(b",", b" ").replace(b"}", b" ").split(b'"child-pid":')[1:]:
        return int(word.split()[0])
    raise BoxError("bubblewrap does not say which process it started")


def readable(descriptor: int, seconds: float) -> bool:
    """Whether there is something to read within the time; with 0 nobody waits."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0, ceil(seconds * 1000))))
