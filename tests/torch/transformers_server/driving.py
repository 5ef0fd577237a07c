"""Drives an engine without HTTP: prompts in, finished sequences out."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy
from tests.support.patience import PATIENCE_S

from agentc_backends.engine.generation import ClosedError, Engine, EngineLimits, EngineRequest
from agentc_backends.engine.model import Checkpoint


class Driven(Engine):
    """An engine on a thread, given work by others."""

    def __init__(self, checkpoint: Checkpoint, limits: EngineLimits, context: int) -> None:
        super().__init__(checkpoint, limits, context)
        self._given: queue.SimpleQueue[EngineRequest | Callable[[], None] | None] = (
            queue.SimpleQueue()
        )
        self.thread = threading.Thread(target=self.run, args=(self,), daemon=True)

    def submit(self, work: EngineRequest | Callable[[], None] | None) -> None:
        """Work, an action, or None for the end."""
        self._given.put(work)

    def take(self, wait: bool) -> Iterator[EngineRequest | Callable[[], None]]:
        while wait or not self._given.empty():
            work = self._given.get()
            if work is None:
                raise ClosedError
            wait = False
            yield work


@contextmanager
def running(checkpoint: Checkpoint, context: int = 512, **limits: Any) -> Iterator[Driven]:
    engine = Driven(checkpoint, EngineLimits(**limits), context)
    engine.thread.start()
    try:
        yield engine
    finally:
        engine.submit(None)
        engine.thread.join(PATIENCE_S)


def finish(engine: Driven, requests: Sequence[dict[str, Any]]) -> list[EngineRequest]:
    """Submit all requests at once and wait for them."""
    left = threading.Semaphore(0)
    sequences = [
        EngineRequest(
            done=lambda sequence: left.release(),
            **{**request, "prompt": numpy.array(request["prompt"], dtype=numpy.int32)},
        )
        for request in requests
    ]
    for sequence in sequences:
        engine.submit(sequence)
    for _ in sequences:
        assert left.acquire(timeout=PATIENCE_S), "the engine did not finish"
    return sequences


def one(engine: Driven, **request: Any) -> EngineRequest:
    return finish(engine, [request])[0]
