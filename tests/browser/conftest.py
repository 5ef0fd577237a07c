"""One boxed browser for the tests of a worker; where tests have to run, a machine without is a
failure."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from agentc.runtime.browser.box import NoBrowserError
from agentc.runtime.browser.render import Renderer, RenderLimits

STYLE = b"body{margin:0;font:16px 'DejaVu Sans'} .wide{width:640px;background:#123456;color:#fff}"
STYLE_ADDRESS = "https://styles.example/own.css"


def answer(url: str) -> tuple[str, bytes] | None:
    return ("text/css", STYLE) if url == STYLE_ADDRESS else None


@pytest.fixture(scope="session")
def renderer() -> Iterator[Renderer]:
    """Its pages may take 3 s of processor time, many times what an honest one does."""
    made = Renderer(answer, RenderLimits(seconds=3.0))
    try:
        made.facts()
    except NoBrowserError as error:
        if os.environ.get("AGENTC_REQUIRE_BROWSER"):
            raise
        pytest.skip(str(error))
    yield made
    made.close()
