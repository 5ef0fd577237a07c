"""Keeper: renews the claims of a wrapper from its watchdog, so that neither hashing a large
checkpoint nor building an environment makes others believe that the wrapper is gone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from agentc.runtime.store import holder
from agentc.runtime.store.claim import ObjectLock


class Heartbeat:
    """Beats for claims; `every` is the pause between two rounds in seconds."""

    def __init__(self, claims: Sequence[ObjectLock]) -> None:
        self._claims: list[ObjectLock] = list(claims)
        span = holder.stale_seconds()
        self.every = span / holder.BEATS
        self._patience = span / 2
        self._reached = _clock()

    def beat(self) -> bool:
        """One round. False when the wrapper has to stop at once: a claim was taken over, or the
        owner files could not be reached for so long that others may take it over any moment."""
        reached = True
        for claim in self._claims:
            try:
                if not claim.beat():
                    return False
            except FileNotFoundError:
                return False
            except OSError:
                reached = False
        if reached:
            self._reached = _clock()
        return _clock() - self._reached < self._patience

    def release(self) -> None:
        """The wrapper is gone and all that it started: let go for it."""
        for claim in self._claims:
            with suppress(OSError):
                claim.release()


def _clock() -> float:
    """Seconds, those of a machine that was suspended included."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)
