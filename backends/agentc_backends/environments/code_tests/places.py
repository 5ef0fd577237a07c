"""Threads in which answers are tried, each with a nursery of its own, kept from answer to answer.
An answer waits a moment for one of the usual places; then it has another, for the others may sleep.

Where none can be had (an older kernel or Python), or one breaks, an answer has a box to itself: the
same box, started anew. Neighbours: `calls.py`; `agentc.runtime.sandbox.nursery`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from agentc.runtime.sandbox.kinds import CodeBox
from agentc.runtime.sandbox.nursery import BoxNursery
from agentc.runtime.sandbox.process import BoxError
from agentc_backends.environments.code_tests.calls import CallLimits, Place, nursery_of

Made = TypeVar("Made")


_MOMENT_S = 0.25


class CallPlaces:
    """`usual` places, and up to `most` while answers sleep. May be shared by threads."""

    def __init__(self, box: CodeBox, limits: CallLimits, usual: int, most: int = 0) -> None:
        self._box, self._limits = box, limits
        self._usual = threading.Semaphore(usual)
        self._pool = ThreadPoolExecutor(max(usual, most), thread_name_prefix="boxes")
        self._own = threading.local()

    def run(self, work: Callable[[Place], Made]) -> Made:
        """What the work made of a place. Raises what it raises, BoxError where no box does its
        part."""
        usual = self._usual.acquire(timeout=_MOMENT_S)
        try:
            return self._pool.submit(self._run, work).result()
        finally:
            if usual:
                self._usual.release()

    def close(self) -> None:
        """End the threads, and with them their nurseries."""
        self._pool.shutdown()

    def _run(self, work: Callable[[Place], Made]) -> Made:
        nursery = self._nursery()
        if nursery is not None:
            with suppress(BoxError):
                return work(nursery)
        return work(self._box)

    def _nursery(self) -> BoxNursery | None:
        """This thread's, a new one for one that broke; None where there was none at all."""
        found: BoxNursery | None = getattr(self._own, "nursery", None)
        if found is not None and found.broken:
            with suppress(BoxError):
                found.end()
        if found is None and hasattr(self._own, "nursery"):
            return None
        if found is None or found.broken:
            found = None
            with suppress(BoxError):
                found = nursery_of(self._box, self._limits)
            self._own.nursery = found
        return found
