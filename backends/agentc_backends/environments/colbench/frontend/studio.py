"""Renders pages of a server's episodes and compares them with the references, each of which is
rendered once."""

from __future__ import annotations

import os
import re
import struct
import threading
import zlib
from collections.abc import Sequence
from concurrent.futures import Future
from functools import lru_cache

from agentc.runtime.browser.render import Answer, Rendered, RenderLimits, RenderPool
from agentc_backends.environments.colbench.frontend.pages import TAILWIND, PageTask
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.frontend.similarity import (
    PictureCosine,
    PictureEncoder,
    black_square,
    composite,
    mean,
)

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
                    f"the page of task {task.id} rendered twice is like itself only at "
                    f"{similarity:.4f}, so pages cannot be judged here"
                )

    def close(self) -> None:
        """Ends the browsers."""
        self._pool.close()

    def _seen(self, task: PageTask) -> Rendered:
        found = self._pool.render(task.reference)
        if not found.png:
            raise UnseenReferenceError(f"the page of task {task.id} does not show: {found.verdict}")
        return found


# Responses to a page's requests: our own stylesheet, Tailwind's from a file, and grey pictures
# instead of those of the services that ColBench's pages name. Nothing else is answered.

OWN = "https://pages.invalid/style.css"
"""Where invented pages find their classes; `.invalid` belongs to nobody."""
STYLE = """\
* { margin: 0; padding: 0; box-sizing: border-box }
body { font-family: "DejaVu Sans", sans-serif; font-size: 18px; color: #222222 }
header, footer, section { padding: 24px }
main { display: grid; gap: 16px; padding: 16px }
.blue { background: #2563eb; color: #ffffff }
.green { background: #15803d; color: #ffffff }
.red { background: #b91c1c; color: #ffffff }
.grey { background: #e5e7eb }
.left { text-align: left }
.center { text-align: center }
.right { text-align: right }
.small { font-size: 14px }
.large { font-size: 40px }
.one { grid-template-columns: 1fr }
.two { grid-template-columns: 1fr 1fr }
.three { grid-template-columns: 1fr 1fr 1fr }
"""
_PICTURES = (
    re.compile(r"https?://(?:fastly\.)?picsum\.photos/(?:id/\d+/)?(\d{1,4})/(\d{1,4})(?:[/?.].*)?"),
    re.compile(r"https?://source\.unsplash\.com/(?:random/)?(\d{1,4})x(\d{1,4})(?:[/?].*)?"),
    re.compile(r"https?://via\.placeholder\.com/(\d{1,4})(?:x(\d{1,4}))?(?:[/?.].*)?"),
)
_LARGEST = 4096
_GREY = 0xB0


def answers(tailwind: bytes | None) -> Answer:
    """The table for pages; without `tailwind` its address is refused like any other."""

    def answer(url: str) -> tuple[str, bytes] | None:
        if url == OWN:
            return "text/css", STYLE.encode()
        if tailwind is not None and TAILWIND in url:
            return "text/css", tailwind
        for pattern in _PICTURES:
            found = pattern.fullmatch(url)
            if found is not None:
                width, height = int(found[1]), int(found[2] or found[1])
                if 0 < width <= _LARGEST and 0 < height <= _LARGEST:
                    return "image/png", grey_picture(width, height)
        return None

    return answer


@lru_cache(maxsize=256)
def grey_picture(width: int, height: int) -> bytes:
    """A PNG of one grey."""
    rows = (b"\0" + bytes([_GREY]) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
