"""An event loop in a thread of its own, for threads that wait for what is asked of other servers.

Neighbours: `asked_model.py`, `asked_encoder.py`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


class AskedLoop:
    """Starts with the first use; may be shared by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def wait_for(self, asked: Coroutine[Any, Any, _T]) -> _T:
        """What comes of it, or raises."""
        return asyncio.run_coroutine_threadsafe(asked, self._running()).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
            return self._loop
