"""Signals that ask a process to stop, as an exception or as nothing at all.

Neighbours: `supervise.py` (which also waits for children), `claiming.py`, `agentc.run`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


STOPPED = "interrupted"
"""How the message of a StoppedError begins, which a job's status keeps."""


class StoppedError(Exception):
    """A signal asked this process to stop."""

    def __init__(self, number: int) -> None:
        # `agentc run` stops its jobs by INT whatever signal it was itself stopped by.
        by = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
        super().__init__(STOPPED + by)
        self.number = number


def says_stopped(message: str) -> bool:
    """Whether a message of a job's status is that of a StoppedError."""
    return message == STOPPED or message.startswith(STOPPED + " by SIG")


@contextmanager
def stoppable() -> Iterator[None]:
    """Signals to stop raise StoppedError in this block (in the main thread, where they arrive)."""

    def stop(number: int, frame: object) -> None:
        raise StoppedError(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What was ignored (HUP under nohup) stays so.
    heeded = [one for one in STOPPING if signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
