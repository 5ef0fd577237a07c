"""Browsers for many threads."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.browser.conftest import answer
from tests.browser.test_pages import PAGE

from agentc.runtime.browser.process import start_browser
from agentc.runtime.browser.render import Rendered, Renderer, RenderPool


def test_a_browser_outlives_the_thread_that_asked_first(renderer: Renderer) -> None:
    """The kernel ends a box with the thread that started it."""
    before = _renderers()
    pool = RenderPool(answer)
    found: list[Rendered] = []
    try:
        for _ in range(2):
            thread = threading.Thread(target=lambda: found.append(pool.render(PAGE)))
            thread.start()
            thread.join()
        assert found == [renderer.render(PAGE)] * 2
        assert pool.restarts == 0
    finally:
        pool.close()
    assert _renderers() == before


def test_many_threads_share_as_many_browsers_as_are_meant(renderer: Renderer) -> None:
    before = _renderers()
    pool = RenderPool(answer, browsers=2)
    pages = [f"<p>{number}</p>" for number in range(8)]
    try:
        with ThreadPoolExecutor(8) as threads:
            found = [*threads.map(pool.render, pages)]
        assert [page.blocks[0].text for page in found] == [str(number) for number in range(8)]
        assert len(_renderers() - before) == 2
    finally:
        pool.close()


def test_what_goes_wrong_is_told_to_who_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Renderer, html: str) -> Rendered:
        raise RuntimeError(html)

    monkeypatch.setattr(Renderer, "render", broken)
    pool = RenderPool()
    try:
        for page in ("one", "two"):
            with pytest.raises(RuntimeError, match=page):
                pool.render(page)
    finally:
        pool.close()


def _renderers() -> set[int | None]:
    return {each.ident for each in threading.enumerate() if each.name == "renderer"}


def test_no_number_is_killed_that_was_waited_for(
    renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be another process's by then."""
    browser = start_browser()
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda number, signal: killed.append(number))
    browser.end()
    browser.end()
    assert killed == []
