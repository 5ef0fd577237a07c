"""Renders pages of a server's episodes and compares them with the references, each of which is
rendered once. Neighbours: `assets.py` (what pages may ask for), `similarity.py`,
`cosine.py`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future

from agentc.runtime.browser.pool import RenderPool
from agentc.runtime.browser.render import Rendered, RenderLimits
from agentc_backends.environments.colbench.frontend.assets import answers
from agentc_backends.environments.colbench.frontend.cosine import (
    PictureCosine,
    PictureEncoder,
    black_square,
)
from agentc_backends.environments.colbench.frontend.pages import PageTask
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.frontend.similarity import composite, mean

_CEILING = 4
_MOST_BROWSERS = 4
NO_HTML = "no_html"


class UnseenReferenceError(Exception):
    """A reference cannot be rendered, so that no page is like it."""


class PageStudio:
    """May be shared by threads."""

    def __init__(
        self,
        settings: FrontendSettings,
        tailwind: bytes | None,
        encoder: PictureEncoder | None = None,
    ) -> None:
        """With an encoder the likeness is its cosine, else a composite."""
        limits = RenderLimits(seconds=settings.page_seconds, memory_mb=settings.page_memory_mb)
        browsers = settings.browsers or min(_MOST_BROWSERS, len(os.sched_getaffinity(0)))
        self._pool = RenderPool(answers(tailwind), limits, browsers)
        self._wanted: dict[str, Future[Rendered]] = {}
        self._lock = threading.Lock()
        self._cosine = None if encoder is None else PictureCosine(encoder)
        self._blank = black_square() if encoder and settings.unseen == "black" else b""

    def facts(self) -> dict[str, str]:
        """What pages are rendered by. Raises NoBrowserError."""
        return self._pool.facts()

    def render(self, html: str) -> Rendered:
        """Raises NoBrowserError."""
        return self._pool.render(html)

    def wanted(self, task: PageTask) -> Rendered:
        """A task's reference. Raises UnseenReferenceError, NoBrowserError."""
        with self._lock:
            found = self._wanted.get(task.id)
            mine = found is None
            if found is None:
                found = self._wanted[task.id] = Future()
        if mine:
            try:
                found.set_result(self._seen(task))
            except BaseException as error:
                with self._lock:
                    del self._wanted[task.id]
                found.set_exception(error)
        return found.result()

    def compared(
        self, task: PageTask, made: Rendered | None
    ) -> tuple[str, dict[str, float], float]:
        """Verdict, parts and similarity; a page that is not there, or does not show, is like none,
        or as a black square is. Raises UnseenReferenceError, NoBrowserError, EnvironmentFailure."""
        verdict = NO_HTML if made is None else made.verdict
        shown = (made.png if made is not None else b"") or self._blank
        if not shown:
            return verdict, {}, 0.0
        if self._cosine is not None:
            found = self._cosine.of(task.id, self.wanted(task).png, shown)
            return verdict, {"cosine": found}, found
        assert made is not None
        parts = composite(self.wanted(task), made)
        return verdict, parts, mean(parts)

    def check_ceiling(self, tasks: Sequence[PageTask]) -> None:
        """The first tasks' references are rendered and are like themselves. Raises ValueError,
        UnseenReferenceError, NoBrowserError."""
        for task in tasks[:_CEILING]:
            # An encoder sees no more than pictures: equal ones are enough for it.
            similarity = mean(composite(self.wanted(task), self._seen(task)))
            if similarity < 1.0 - 1e-9:
                raise ValueError(
                    f"the page of task {task.id} rendered twice is like itself at {similarity:.4f} "
                    "alone, so pages cannot be judged here"
                )

    def close(self) -> None:
        """Ends the browsers."""
        self._pool.close()

    def _seen(self, task: PageTask) -> Rendered:
        found = self._pool.render(task.reference)
        if not found.png:
            raise UnseenReferenceError(f"the page of task {task.id} does not show: {found.verdict}")
        return found
