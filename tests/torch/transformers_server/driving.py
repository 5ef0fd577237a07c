"""Drives an engine without HTTP: prompts in, finished sequences out."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from agentc_backends.transformers_server.checkpoint import Checkpoint
from agentc_backends.transformers_server.engine import Engine, Limits, Ongoing


@contextmanager
def running(checkpoint: Checkpoint, context: int = 512, **limits: Any) -> Iterator[Engine]:
    engine = Engine(checkpoint, Limits(**limits), context)
    engine.start()
    try:
        yield engine
    finally:
        engine.stop(RuntimeError("the test is over"))


def finish(engine: Engine, requests: Sequence[dict[str, Any]]) -> list[Ongoing]:
    """Submit all requests at once and wait for them; fails on an engine's error."""
    left = threading.Semaphore(0)
    errors: list[Exception] = []

    def done(sequence: Ongoing, error: Exception | None) -> None:
        if error is not None:
            errors.append(error)
        left.release()

    sequences = [
        Ongoing(
            done=done,
            **{**request, "prompt": numpy.array(request["prompt"], dtype=numpy.int32)},
        )
        for request in requests
    ]
    for sequence in sequences:
        engine.submit(sequence)
    for _ in sequences:
        assert left.acquire(timeout=60), "the engine did not finish"
    assert not errors, errors
    return sequences


def one(engine: Engine, **request: Any) -> Ongoing:
    return finish(engine, [request])[0]
