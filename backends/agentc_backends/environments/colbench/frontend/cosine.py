"""The paper's likeness of two pages: the cosine of an encoder's features of their pictures.

Called so only where an encoder is asked; `similarity.py` has the other one.
"""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from PIL import Image

_SIDE = 224
"""Of the black square that the released evaluator has in place of an answer that is none."""


class PictureEncoder(Protocol):
    """Called from several threads at a time."""

    def features(self, picture: bytes) -> Sequence[float]:
        """Raises EnvironmentFailure."""


class PictureCosine:
    """Of pictures with the wanted ones of tasks, whose features are asked for once."""

    def __init__(self, encoder: PictureEncoder) -> None:
        self._encoder = encoder
        self._wanted: dict[str, Future[Sequence[float]]] = {}
        self._lock = threading.Lock()

    def of(self, task_id: str, wanted: bytes, made: bytes) -> float:
        """Between 0 and 1, below which a reward cannot be. Raises EnvironmentFailure."""
        return cosine(self._features_of(task_id, wanted), self._encoder.features(made))

    def _features_of(self, task_id: str, wanted: bytes) -> Sequence[float]:
        with self._lock:
            found = self._wanted.get(task_id)
            mine = found is None
            if found is None:
                found = self._wanted[task_id] = Future()
        if mine:
            try:
                found.set_result(self._encoder.features(wanted))
            except BaseException as error:
                with self._lock:
                    del self._wanted[task_id]
                found.set_exception(error)
        return found.result()


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Exactly 1 of equal ones; what is opposed counts as what has nothing in common."""
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    squares = math.fsum(a * a for a in one) * math.fsum(b * b for b in other)
    return min(1.0, max(0.0, product / math.sqrt(squares))) if squares > 0 else 0.0


def black_square() -> bytes:
    """A PNG."""
    stream = io.BytesIO()
    Image.new("RGB", (_SIDE, _SIDE)).save(stream, "PNG")
    return stream.getvalue()
