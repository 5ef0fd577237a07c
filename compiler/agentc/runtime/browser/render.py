"""A page's picture and the texts in it, by a browser that is restarted when a page has hurt it.

Scripts are off, each page has a tab of its own, and a function of the caller answers or refuses
whatever a page requests. Texts are measured by the prototypes' methods, since a page can give its
parts the names of a document's. `RenderPool` serves many threads.
"""

from __future__ import annotations

import base64
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from agentc.runtime.browser.devtools import (
    BrowserEndError,
    DevtoolsError,
    Event,
    LateReplyError,
)
from agentc.runtime.browser.process import BoxedBrowser, BrowserBox, UseExceededError, start_browser

_MOST, _LONGEST = 1000, 500

MEASURE = """(() => {
  const of = (proto, name) => Object.getOwnPropertyDescriptor(proto, name).get;
  const root = of(Document.prototype, "documentElement").call(document);
  if (!root) return [];
  const parent = of(Node.prototype, "parentElement"), text = of(Node.prototype, "textContent");
  const colour = (value) => (value.match(/[0-9.]+/g) || []).map(Number);
  const behind = (element) => {
    for (let at = element; at; at = parent.call(at)) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const out = [];
  const walk = Document.prototype.createTreeWalker.call(document, root, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode()) && out.length < MOST; ) {
    const said = text.call(node).replace(/\\s+/g, " ").trim();
    if (!said) continue;
    const range = Document.prototype.createRange.call(document);
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.width < 1 || box.height < 1) continue;
    const element = parent.call(node), style = getComputedStyle(element);
    out.push([said.slice(0, LONGEST), box.x, box.y, box.width, box.height,
              colour(style.color).slice(0, 3), behind(element), parseFloat(style.fontSize)]);
  }
  return out;
})()""".replace("MOST", str(_MOST)).replace("LONGEST", str(_LONGEST))


class TextBlock(NamedTuple):
    """Pixels from the page's upper left; colours are red, green, blue, 0 to 255; `background` is
    the nearest one behind the text."""

    text: str
    x: float
    y: float
    width: float
    height: float
    color: tuple[int, int, int]
    background: tuple[int, int, int]
    size: float


def read_blocks(value: Any) -> tuple[TextBlock, ...]:
    """Of what `MEASURE` gave. Raises ValueError, TypeError."""
    return tuple(
        TextBlock(
            str(text),
            float(x),
            float(y),
            float(width),
            float(height),
            _colour(color),
            _colour(background),
            float(size),
        )
        for text, x, y, width, height, color, background, size in value or ()
    )


def _colour(parts: Any) -> tuple[int, int, int]:
    red, green, blue = (round(float(part)) for part in parts)
    return red, green, blue


WIDTH, WINDOW_HEIGHT, HEIGHT = 1280, 720, 8192
"""Pixels: of each picture, of the window that a page is laid out for, of the tallest picture."""
VERDICTS = ("ok", "clipped", "timeout", "memory", "crash")
_MOST_HOSTS = 50
_TRIES = 2

Answer = Callable[[str], tuple[str, bytes] | None]
"""From an address to type and content of what is there; None refuses it."""


class RenderLimits(NamedTuple):
    """Of a page: processor time of the whole browser (a busy machine makes none late), time by the
    clock for those that only wait, and memory. After so many `pages` it is started anew."""

    seconds: float = 8.0
    wall_seconds: float = 300.0
    memory_mb: int = 2048
    pages: int = 500


class Rendered(NamedTuple):
    """What came of a page. `png` is empty unless the verdict is `ok` or `clipped` (there was more
    below); `height` is the page's own. `refused` counts addresses that nobody answered, by host."""

    verdict: str
    refused: dict[str, int]
    png: bytes = b""
    height: int = 0
    blocks: tuple[TextBlock, ...] = ()


class Renderer:
    """For one thread at a time. Starts its browser with the first page, and ends it with `close`.
    `restarts` counts how often one was started anew."""

    def __init__(
        self,
        answer: Answer = lambda url: None,
        limits: RenderLimits | None = None,
        box: BrowserBox | None = None,
    ) -> None:
        self._answer, self._limits, self._box = answer, limits or RenderLimits(), box
        self._browser: BoxedBrowser | None = None
        self._context = ""
        self._pages = 0
        self._starts = 0

    @property
    def restarts(self) -> int:
        return max(0, self._starts - 1)

    def facts(self) -> dict[str, str]:
        """What pages are rendered by. Raises NoBrowserError."""
        browser = self._started()
        return {
            "kind": "bubblewrap",
            "version": browser.box.bubblewrap,
            "browser": browser.version,
            "inner_sandbox": "yes" if browser.box.inner else "no",
        }

    def render(self, html: str) -> Rendered:
        """Raises NoBrowserError where no browser starts; what a page does is a verdict. A page
        under which a whole browser ends, or falls silent until the clock runs out, is tried once
        more in another one: somebody else may have ended it, and Chromium now and then hangs."""
        verdict = "crash"
        for _ in range(_TRIES):
            refused: dict[str, int] = {}
            try:
                return self._tried(html, refused)
            except BrowserEndError:
                verdict = "crash"
            except LateReplyError:
                verdict = "timeout"
        return Rendered(verdict, refused)

    def _tried(self, html: str, refused: dict[str, int]) -> Rendered:
        """Counts in `refused`. Raises BrowserEndError where the browser ended meanwhile, and
        LateReplyError where it said nothing for too long."""
        browser = self._started()
        page = _Page(browser, self._context, self._answer, self._limits.wall_seconds, refused)
        browser.allow(self._limits.seconds)
        verdict = "crash"
        try:
            self._pages += 1
            found = page.rendered(html)
            browser.allow(None)
            if self._pages >= self._limits.pages:
                self.close()
            return found
        except UseExceededError as error:
            verdict = "timeout" if error.what == "time" else error.what
        except (BrowserEndError, LateReplyError):
            self.close()
            raise
        except (_PageEndError, DevtoolsError, ValueError, KeyError, TypeError):
            pass
        # What such a page leaves behind slows, or ends, the pages after it.
        self.close()
        return Rendered(verdict, refused)

    def close(self) -> None:
        """May be called twice; another page starts another browser."""
        if self._browser is not None:
            self._browser.end()
            self._browser = None

    def _started(self) -> BoxedBrowser:
        if self._browser is not None and not self._browser.answers():
            self.close()  # somebody ended it between two pages, of which neither is to blame
        if self._browser is None:
            self._browser = start_browser(self._box, self._limits.memory_mb)
            self._box = self._browser.box
            self._starts += 1
            self._pages = 0
            until = time.monotonic() + self._limits.wall_seconds
            made = self._browser.devtools.call("Target.createBrowserContext", until=until)
            self._context = made["browserContextId"]
        return self._browser


class _PageEndError(Exception):
    """The process that shows the page crashed, and the browser tells so."""


class _Page:
    """A tab, from its opening to its end."""

    def __init__(
        self,
        browser: BoxedBrowser,
        context: str,
        answer: Answer,
        wall_seconds: float,
        refused: dict[str, int],
    ) -> None:
        self._tools, self._context, self._answer = browser.devtools, context, answer
        self._until = time.monotonic() + wall_seconds
        self._session = ""
        self._loaded = False
        self.refused = refused
        self._tools.on_event = self._heard

    def rendered(self, html: str) -> Rendered:
        size = {"width": WIDTH, "height": WINDOW_HEIGHT}
        # Of a tab in the window of the page before, if that is not closed yet, no size may be told.
        where = {"url": "about:blank", "browserContextId": self._context, "newWindow": True, **size}
        target = self._of_browser("Target.createTarget", **where)["targetId"]
        attached = self._of_browser("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._ask("Page.enable")
        self._ask("Inspector.enable")
        self._ask("Emulation.setScriptExecutionDisabled", value=True)
        self._ask("Emulation.setDeviceMetricsOverride", deviceScaleFactor=1, mobile=False, **size)
        # Pictures of what moves are to be equal too.
        self._ask("Animation.enable")
        self._ask("Animation.setPlaybackRate", playbackRate=0)
        self._ask("Fetch.enable", patterns=[{"urlPattern": "*"}])
        frame = self._call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        self._loaded = False
        self._call("Page.setDocumentContent", frameId=frame, html=html)
        self._tools.wait_for(lambda: self._loaded, self._until)
        height = int(self._call("Page.getLayoutMetrics")["cssContentSize"]["height"])
        shown = min(max(height, WINDOW_HEIGHT), HEIGHT)
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": shown, "scale": 1}
        shot = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        png = base64.b64decode(self._call("Page.captureScreenshot", **shot)["data"])
        wanted = {"expression": MEASURE, "returnByValue": True}
        value = self._call("Runtime.evaluate", **wanted)["result"].get("value")
        with suppress(DevtoolsError):
            self._of_browser("Target.closeTarget", targetId=target)
        verdict = "ok" if height <= HEIGHT else "clipped"
        return Rendered(verdict, self.refused, png, height, read_blocks(value))

    def _of_browser(self, method: str, **params: Any) -> dict[str, Any]:
        return self._tools.call(method, params, until=self._until)

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._tools.call(method, params, session=self._session, until=self._until)

    def _ask(self, method: str, **params: Any) -> None:
        self._tools.send(method, params, session=self._session, until=self._until)

    def _heard(self, event: Event) -> None:
        if event.get("sessionId") != self._session:
            return
        method = event["method"]
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Inspector.targetCrashed":
            raise _PageEndError
        elif method == "Fetch.requestPaused":
            self._on_request(event["params"]["requestId"], event["params"]["request"]["url"])

    def _on_request(self, request: str, url: str) -> None:
        answer = self._answer(url)
        if answer is None:
            host = urlsplit(url).hostname or urlsplit(url).scheme
            if host in self.refused or len(self.refused) < _MOST_HOSTS:
                self.refused[host] = self.refused.get(host, 0) + 1
            self._ask("Fetch.failRequest", requestId=request, errorReason="BlockedByClient")
            return
        kind, content = answer
        self._ask(
            "Fetch.fulfillRequest",
            requestId=request,
            responseCode=200,
            responseHeaders=[{"name": "content-type", "value": kind}],
            body=base64.b64encode(content).decode(),
        )


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
