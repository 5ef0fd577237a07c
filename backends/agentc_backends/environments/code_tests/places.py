"""Threads in which answers are tried, each with a nursery of its own, kept from answer to answer.

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


class CallPlaces:
    """May be shared by threads, which wait for one of its own."""

    def __init__(self, box: CodeBox, limits: CallLimits, threads: int) -> None:
        self._box, self._limits = box, limits
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="boxes")
        self._own = threading.local()

    def run(self, work: Callable[[Place], Made]) -> Made:
        """What the work made of a place. Raises what it raises, BoxError where no box does its
        part."""
        return self._pool.submit(self._run, work).result()

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
