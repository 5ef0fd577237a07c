"""Browsers for many threads: each has a thread of its own, which lives as long as the pool.

The kernel ends a box with the thread that started it, and threads that serve requests come and go.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from agentc.runtime.browser.render import Answer, Rendered, Renderer, RenderLimits

_Work = Callable[[Renderer], Any]


class RenderPool:
    """Up to `browsers` pages at a time; a browser starts with the first page that finds no other
    idle."""

    def __init__(
        self,
        answer: Answer = lambda url: None,
        limits: RenderLimits | None = None,
        browsers: int = 1,
    ) -> None:
        self._answer, self._limits, self._most = answer, limits, browsers
        self._work: queue.Queue[tuple[_Work, Future[Any]] | None] = queue.Queue()
        self._threads: list[threading.Thread] = []
        self._renderers: list[Renderer] = []
        self._lock = threading.Lock()
        self._busy = 0

    @property
    def restarts(self) -> int:
        """How often a page ended its browser, or one was old."""
        return sum(each.restarts for each in self._renderers)

    def render(self, html: str) -> Rendered:
        """As `Renderer.render`, from any thread."""
        found: Rendered = self._done(lambda renderer: renderer.render(html))
        return found

    def facts(self) -> dict[str, str]:
        """Of one browser: they are alike. Raises NoBrowserError."""
        found: dict[str, str] = self._done(lambda renderer: renderer.facts())
        return found

    def close(self) -> None:
        """Ends the browsers; pages that wait are still rendered."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._work.put(None)
        for thread in threads:
            thread.join()

    def _done(self, work: _Work) -> Any:
        result: Future[Any] = Future()
        with self._lock:
            self._busy += 1
            if len(self._threads) < min(self._busy, self._most):
                thread = threading.Thread(target=self._serve, name="renderer", daemon=True)
                self._threads.append(thread)
                thread.start()
        try:
            self._work.put((work, result))
            return result.result()
        finally:
            with self._lock:
                self._busy -= 1

    def _serve(self) -> None:
        renderer = Renderer(self._answer, self._limits)
        self._renderers.append(renderer)
        try:
            while True:
                taken = self._work.get()
                if taken is None:
                    return
                work, result = taken
                try:
                    result.set_result(work(renderer))
                except BaseException as error:
                    result.set_exception(error)
        finally:
            renderer.close()
