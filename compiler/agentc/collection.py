"""Pausing Python's collector of cycles where large trees are built, which hold none.

It walks all of them again and again while a plan of thousands of jobs is made.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Iterator[None]:
    """No cycle is collected while the block runs (or the function that this decorates)."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
