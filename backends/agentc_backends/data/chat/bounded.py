"""Bounds what a model's own chat template may cost: it is a program that came with the weights.

Its sandbox keeps it from the machine, not from looping for years or writing gigabytes.
`template_memory.py` counts what it makes. A thread watches the CPU time of those that render, so
that a busy machine ends nothing; what it ends gets an exception between two steps of the template.
Used by tokens.py and the server's chat_text.py.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.template_memory import begin

LIMIT_S = 5.0
"""Of CPU time. Templates take milliseconds for conversations of a hundred turns."""
LIMIT_CHARACTERS = 16_000_000

_REMEDY = "choose a built-in chat_format on the model stage, or correct the template"


class TemplateTimeError(FormatError):
    """A template used up its time; raised by the watching thread in the one that renders."""

    def __init__(self) -> None:
        super().__init__(f"the model's chat template does not end (time limit); {_REMEDY}")


def bounded(render: Callable[[], str], limit_s: float | None = None) -> str:
    """The text that `render` gives in this thread. Raises FormatError where it takes more than
    `limit_s` (else LIMIT_S) of CPU time, writes more than LIMIT_CHARACTERS, or holds more than
    template_memory.LIMIT."""
    limit_s = LIMIT_S if limit_s is None else limit_s
    begin()
    entry = _Entry(threading.get_ident(), limit_s, _clock_of(threading.get_ident()))
    try:
        _WATCH.add(entry)
        try:
            text = render()
        finally:
            _WATCH.remove(entry)
    except TemplateTimeError:
        raise FormatError(
            f"the model's chat template took more than {limit_s:g} s of CPU time for one "
            f"conversation; {_REMEDY}"
        ) from None
    if len(text) > LIMIT_CHARACTERS:
        raise FormatError(
            f"the model's chat template wrote {len(text):,} characters for one conversation, more "
            f"than {LIMIT_CHARACTERS:,}; {_REMEDY}"
        )
    return text


def _clock_of(thread: int) -> Callable[[], float]:
    """The CPU time of a thread, or the time of day where the system does not tell it."""
    number = getattr(time, "pthread_getcpuclockid", None)
    if number is None:
        return time.monotonic
    clock = number(thread)
    return lambda: time.clock_gettime(clock)


class _Entry:
    """A thread that renders."""

    __slots__ = ("clock", "ends", "struck", "thread", "wait")

    def __init__(self, thread: int, limit_s: float, clock: Callable[[], float]) -> None:
        self.thread = thread
        self.clock = clock
        self.ends = clock() + limit_s
        self.wait = limit_s / 10
        self.struck = False


@dataclass(slots=True)
class _Watch:
    """The thread that looks after all of them; it sleeps while there is none."""

    lock: threading.Lock
    """Of `changed`. Those that render take it by itself: the exception may reach them wherever
    Python code runs, within a condition's own `__enter__` too, and the lock would stay taken."""
    changed: threading.Condition
    entries: set[_Entry]
    thread: threading.Thread | None = None

    def add(self, entry: _Entry) -> None:
        with self.lock:
            self.entries.add(entry)
            if self.thread is None or not self.thread.is_alive():
                self.thread = threading.Thread(target=self._run, daemon=True, name="templates")
                self.thread.start()
            if len(self.entries) == 1:
                self.changed.notify()

    def remove(self, entry: _Entry) -> None:
        with self.lock:
            self.entries.discard(entry)
            if entry.struck:
                # It may have ended by itself with the exception still on its way.
                _raise_in(entry.thread, None)

    def _run(self) -> None:
        with self.changed:
            while True:
                if not self.entries:
                    self.changed.wait()
                    continue
                self.changed.wait(min(entry.wait for entry in self.entries))
                for entry in [each for each in self.entries if each.clock() > each.ends]:
                    self.entries.discard(entry)
                    entry.struck = True
                    _raise_in(entry.thread, TemplateTimeError)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    given = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), given)


def _watch() -> _Watch:
    lock = threading.Lock()
    return _Watch(lock, threading.Condition(lock), set())


_WATCH = _watch()
