"""Pages that are ours, and environments over them without a server; one browser for all tests of a
worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("skimage", reason="scikit-image is not installed: make setup")

from agentc.runtime.browser.process import NoBrowserError
from agentc_backends.environments.colbench.frontend.environment import (
    FrontendEnvironment,
    FrontendShared,
)
from agentc_backends.environments.colbench.frontend.human import PageHuman, ScriptedPageHuman
from agentc_backends.environments.colbench.frontend.invented import invent
from agentc_backends.environments.colbench.frontend.pages import PageTask, page_task
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.frontend.studio import PageStudio

SECRET = "canary-of-the-wanted-page"
WANTED = (
    '<html><link rel="stylesheet" href="https://pages.invalid/style.css"><body>'
    f"<!-- {SECRET} -->"
    '<header class="blue center"><h1 class="large">Oak Bakery</h1></header>'
    '<main class="two"><section class="grey"><h2>Prices</h2></section>'
    '<section class="grey"><h2>Hours</h2></section></main>'
    '<footer class="blue">Open daily</footer></body></html>'
)
TASK = page_task("A page for a bakery.", WANTED)
OTHER = page_task("A page for a zoo.", WANTED.replace("Oak Bakery", "River Zoo"))

OpenedPages = Callable[..., FrontendEnvironment]


@pytest.fixture(scope="session")
def studio() -> Iterator[PageStudio]:
    made = PageStudio(FrontendSettings(page_seconds=3.0, browsers=1), None)
    try:
        made.facts()
    except NoBrowserError as error:
        if os.environ.get("AGENTC_REQUIRE_BROWSER"):
            raise
        pytest.skip(str(error))
    yield made
    made.close()


@pytest.fixture
def opened_pages(studio: PageStudio) -> OpenedPages:
    """An environment of some tasks, else of ten invented ones, with a human and settings of one's
    own."""

    def open_it(
        *tasks: PageTask, human: PageHuman | None = None, **settings: Any
    ) -> FrontendEnvironment:
        chosen = FrontendSettings(**{"tasks": "pages.jsonl" if tasks else "invented", **settings})
        invented = {} if tasks else invent(chosen)
        of = tasks or tuple(each.task for each in invented.values())
        world = FrontendShared(chosen, {"all": of}, invented, studio, human or ScriptedPageHuman())
        return FrontendEnvironment(world)

    return open_it
