"""One boxed browser for the tests of a worker; where tests have to run, a machine without is a
failure."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from agentc.runtime.browser.process import NoBrowserError
from agentc.runtime.browser.render import Renderer, RenderLimits

STYLE = b"body{margin:0;font:16px 'DejaVu Sans'} .wide{width:640px;background:#123456;color:#fff}"
STYLE_ADDRESS = "https://styles.example/own.css"


def answer(url: str) -> tuple[str, bytes] | None:
    return ("text/css", STYLE) if url == STYLE_ADDRESS else None


def _open(seconds: float) -> Iterator[Renderer]:
    renderer = Renderer(answer, RenderLimits(seconds=seconds))
    try:
        renderer.facts()
    except NoBrowserError as error:
        if os.environ.get("AGENTC_REQUIRE_BROWSER"):
            raise
        pytest.skip(str(error))
    yield renderer
    renderer.close()


@pytest.fixture(scope="session")
def renderer() -> Iterator[Renderer]:
    """For pages that must come to their end: a slow or busy machine takes seconds of CPU time for
    what an idle one does in a tenth."""
    yield from _open(seconds=120.0)


@pytest.fixture(scope="session")
def hasty_renderer() -> Iterator[Renderer]:
    """For pages that never come to their end: it gives up after 3 s of CPU time."""
    yield from _open(seconds=3.0)
