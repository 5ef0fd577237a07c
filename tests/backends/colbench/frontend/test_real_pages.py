"""100 pages of ColBench's own (not ours to ship), without a network."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.backends.colbench.conftest import SHARED

from agentc_backends.environments.colbench.frontend.pages import (
    TAILWIND,
    TAILWIND_FILE,
    TAILWIND_SHA256,
    PageTask,
    read_pages,
    snippet,
)
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.frontend.studio import PageStudio


@pytest.fixture(scope="module")
def tasks() -> tuple[PageTask, ...]:
    file = SHARED / "data/colbench/frontend_100.jsonl"
    if not file.is_file():
        pytest.skip(f"no pages at {file}; set AGENTC_SHARED")
    return read_pages(file.read_bytes(), file.name)


@pytest.fixture(scope="module")
def real_studio(studio: PageStudio) -> Iterator[PageStudio]:
    """With Tailwind's stylesheet where AGENTC_TAILWIND names the folder that it was fetched to."""
    file = Path(os.environ.get("AGENTC_TAILWIND", "nowhere"), TAILWIND_FILE)
    content = file.read_bytes() if file.is_file() else None
    assert content is None or hashlib.sha256(content).hexdigest() == TAILWIND_SHA256
    made = PageStudio(FrontendSettings(page_seconds=30.0, browsers=1), content)
    yield made
    made.close()


def test_each_is_a_page_that_links_tailwind(tasks: tuple[PageTask, ...]) -> None:
    assert len({task.id for task in tasks}) == 100
    assert all(TAILWIND in task.reference for task in tasks)
    assert sum(snippet(task.reference) == task.reference.strip() for task in tasks) == 100


def test_some_are_rendered_and_like_themselves(
    tasks: tuple[PageTask, ...], real_studio: PageStudio
) -> None:
    _alike(tasks[:3], real_studio)


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.long)])
def test_many_are_rendered_and_like_themselves(
    count: int, tasks: tuple[PageTask, ...], real_studio: PageStudio
) -> None:
    _alike(tasks[:count], real_studio)
    missed = {host for task in tasks[:count] for host in real_studio.wanted(task).refused}
    # Six of the addresses at picsum.photos have a form that the service itself does not know.
    known = {"cdn.jsdelivr.net", "www.youtube.com", "images.unsplash.com", "picsum.photos"}
    assert missed <= known


def _alike(tasks: tuple[PageTask, ...], studio: PageStudio) -> None:
    for task in tasks:
        again = studio.render(task.reference)
        assert again.png == studio.wanted(task).png
        assert studio.compared(task, again)[2] == pytest.approx(1.0, abs=1e-9)
        assert again.blocks
