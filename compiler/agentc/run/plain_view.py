"""PlainView: timestamped lines for logs and pipes: every change of state, and now and then how
far the active jobs are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TextIO

from agentc.run.observe import JobSnapshot
from agentc.run.wording import FULL_DISK, STATE_WORDS, sentence

_EVERY_S = 15.0
_PASSING_S = 10.0
_IDLE = ("waiting", "queued")


class PlainView:
    """Writes lines to a stream. Use as a context manager, like the live view."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._states: dict[str, str] = {}
        self._told: dict[str, float] = {}
        self._last_passing = time.monotonic()

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.flush()

    def show(self, jobs: Sequence[JobSnapshot]) -> None:
        """Tell what changed since the last call."""
        now = time.monotonic()
        for seen in jobs:
            before = self._states.get(seen.id)
            if before is None and seen.state in (*_IDLE, "done"):
                self._states[seen.id] = seen.state
                continue
            if before in _IDLE and seen.state in _IDLE:
                continue  # of the queue there is a line for all (slurm_waiting.py)
            again = seen.active and now - self._told.get(seen.id, now) >= _EVERY_S
            if seen.state != before or again:
                self._states[seen.id] = seen.state
                self._told[seen.id] = now
                self.say(f"{seen.id}: {_line(seen)}")

    def say(self, text: str, *, passing: bool = False) -> None:
        """One line with the time. Of `passing` ones only one in ten seconds is written."""
        now = time.monotonic()
        if passing and now - self._last_passing < _PASSING_S:
            return
        if passing:
            self._last_passing = now
        self._stream.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        self._stream.flush()


def _line(seen: JobSnapshot) -> str:
    """A full disk ends many jobs: the run names once, at its end, which and what helps."""
    if FULL_DISK in seen.message and seen.state in ("failed", "killed"):
        return f"{STATE_WORDS[seen.state]}: its disk is full"
    return sentence(seen)
