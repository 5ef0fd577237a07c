"""Fixtures for tests of the runtime, which conftest.py of their folders import: a tiny plan in a
temporary folder, and one shared empty software stack, so that only the tests of
environments build some."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.patience import wait_for
from tiny_plan import TinyPlan, processes_of

__all__ = ["empty_folder", "plan", "shared_environments"]


@pytest.fixture(scope="session")
def empty_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("environments")


@pytest.fixture(scope="module", autouse=True)
def shared_environments(empty_folder: Path) -> Iterator[None]:
    # Not for the session: it would hide the real environments from the tests of other folders.
    before = os.environ.get("AGENTC_SOFTWARE")
    os.environ["AGENTC_SOFTWARE"] = str(empty_folder)
    yield
    if before is None:
        del os.environ["AGENTC_SOFTWARE"]
    else:
        os.environ["AGENTC_SOFTWARE"] = before


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[TinyPlan]:
    """An empty plan; when the test is over, none of its processes may be left, and none of those
    that servers fork may have ended by itself."""
    tiny = TinyPlan(tmp_path)
    yield tiny
    wait_for(lambda: not processes_of(tiny.store))
    assert not tiny.outlived.exists()
