"""The browser's own life: where there is none, when it is started anew, what is left of it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.browser.test_pages import PAGE

from agentc.runtime.browser.devtools import LateReplyError
from agentc.runtime.browser.process import (
    BoxedBrowser,
    NoBrowserError,
    find_box,
    start_browser,
    use_of_tree,
)
from agentc.runtime.browser.render import Renderer, RenderLimits


def test_without_chromium_it_is_refused_with_what_to_install() -> None:
    with pytest.raises(NoBrowserError, match=r"no Chromium .*`apt install bubblewrap chromium"):
        find_box(programs=("/nowhere/chromium",))


def test_without_bubblewrap_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoBrowserError, match=r"bwrap is not installed.*`apt install bubblewrap"):
        find_box()


def test_a_program_that_is_no_browser(renderer: Renderer) -> None:
    box = find_box(programs=("/usr/bin/false",))
    with pytest.raises(NoBrowserError, match="it does not start"):
        start_browser(box)


def test_it_is_started_anew_after_so_many_pages_and_where_it_has_ended(
    renderer: Renderer,
) -> None:
    short = Renderer(limits=RenderLimits(pages=2))
    try:
        verdicts = [short.render("<p>x").verdict for _ in range(3)]
        assert (verdicts, short.restarts) == (["ok"] * 3, 1)
        browser = short._browser
        assert isinstance(browser, BoxedBrowser)
        os.kill(browser._pid, signal.SIGKILL)
        while browser.answers():  # what is killed ends when the kernel comes to it
            time.sleep(0.01)
        assert (short.render("<p>x").verdict, short.restarts) == ("ok", 2)
    finally:
        short.close()


@pytest.mark.parametrize(("kills", "verdict"), [(1, "ok"), (9, "crash")])
def test_a_page_is_blamed_when_two_browsers_end_under_it(
    renderer: Renderer, kills: int, verdict: str
) -> None:
    """Somebody else may have ended the one."""
    killed = []

    def answer(url: str) -> None:
        browser = made._browser
        assert isinstance(browser, BoxedBrowser)
        if len(killed) < kills:
            killed.append(url)
            assert browser._inner is not None
            signal.pidfd_send_signal(browser._inner, signal.SIGKILL)

    made = Renderer(answer)
    try:
        found = made.render("<link rel=stylesheet href='https://a.example/x.css'><p>x")
        assert (found.verdict, made.restarts) == (verdict, 1)
        assert found.refused == {"a.example": 1}
        assert made.render("<p>x").verdict == "ok"
    finally:
        made.close()


@pytest.mark.parametrize(("times", "verdict"), [(1, "ok"), (9, "timeout")])
def test_a_page_is_late_when_two_browsers_fall_silent_under_it(
    renderer: Renderer, times: int, verdict: str
) -> None:
    """Chromium now and then waits for itself. That the clock ran out is told here by a request."""
    silent = []

    def answer(url: str) -> None:
        if len(silent) < times:
            silent.append(url)
            raise LateReplyError

    made = Renderer(answer)
    try:
        found = made.render("<link rel=stylesheet href='https://a.example/x.css'><p>x")
        assert (found.verdict, made.restarts) == (verdict, 1)
        assert made.render("<p>x").verdict == "ok"
    finally:
        made.close()


def test_one_that_takes_too_much_memory_is_ended(renderer: Renderer) -> None:
    small = Renderer(limits=RenderLimits(memory_mb=20))
    try:
        assert small.render(PAGE).verdict == "memory"
    finally:
        small.close()


def test_nothing_is_left_of_one_that_was_ended(renderer: Renderer) -> None:
    open_before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - `iterdir` opens one itself
    made = Renderer()
    made.render("<p>x")
    browser = made._browser
    assert isinstance(browser, BoxedBrowser)
    pid = browser._pid
    assert use_of_tree(pid).memory > 10 << 20
    made.close()
    assert use_of_tree(pid) == (0, 0.0)
    assert not Path("/proc", str(pid)).exists()
    assert len(os.listdir("/proc/self/fd")) == open_before  # noqa: PTH208
    made.close()


def test_a_page_whose_window_is_still_open_does_not_harm_the_next_one(renderer: Renderer) -> None:
    """A browser closes it later than it says so."""
    starts = renderer.restarts
    assert renderer.render(PAGE).verdict == "ok"
    browser = renderer._browser
    assert isinstance(browser, BoxedBrowser)
    open_one = {"url": "about:blank", "browserContextId": renderer._context}
    browser.devtools.call("Target.createTarget", open_one, until=time.monotonic() + 60)
    assert renderer.render(PAGE).verdict == "ok"
    assert renderer.restarts == starts
