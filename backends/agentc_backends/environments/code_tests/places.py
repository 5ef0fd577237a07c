"""Nurseries in which answers are tried, kept from answer to answer, each for one at a time. An
answer waits a moment for one of the usual places; then it has another, for the others may sleep.

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
    """`usual` places, and up to `most` while answers sleep. May be shared by threads: work is done
    in the thread that asks for it, as to hand it to another one would cost each answer."""

    def __init__(self, box: CodeBox, limits: CallLimits, usual: int, most: int = 0) -> None:
        self._box, self._limits = box, limits
        most = max(usual, most)
        self._usual, self._all = threading.Semaphore(usual), threading.Semaphore(most)
        # A nursery ends with the thread that made it, and is to outlive who asks for it.
        self._makers = ThreadPoolExecutor(most, thread_name_prefix="boxes")
        self._free: list[BoxNursery] = []
        self._can_be_had: bool | None = None

    def run(self, work: Callable[[Place], Made]) -> Made:
        """What the work made of a place. Raises what it raises, BoxError where no box does its
        part."""
        usual = self._usual.acquire(timeout=_MOMENT_S)
        try:
            with self._all:
                return self._run(work)
        finally:
            if usual:
                self._usual.release()

    def close(self) -> None:
        """End the nurseries, once nobody uses them."""
        while self._free:
            with suppress(BoxError):
                self._free.pop().end()
        self._makers.shutdown()

    def _run(self, work: Callable[[Place], Made]) -> Made:
        nursery = self._nursery()
        if nursery is not None:
            try:
                with suppress(BoxError):
                    return work(nursery)
            finally:
                self._free.append(nursery)
        return work(self._box)

    def _nursery(self) -> BoxNursery | None:
        """The one that was used last, a new one for one that broke; None where none starts, for
        good if none ever did."""
        while self._free:
            with suppress(IndexError, BoxError):
                found = self._free.pop()
                if not found.broken:
                    return found
                found.end()
        if self._can_be_had is not False:
            with suppress(BoxError):
                made = self._makers.submit(nursery_of, self._box, self._limits).result()
                self._can_be_had = True
                return made
            self._can_be_had = bool(self._can_be_had)
        return None
