"""Fixtures for tests of the runtime: a tiny plan in a temporary folder, and one shared empty
software environment, so that only the tests of environments build some."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tiny_plan import TinyPlan, processes_of, wait_for


@pytest.fixture(scope="session", autouse=True)
def _shared_environments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("AGENTC_ENVIRONMENTS")
    os.environ["AGENTC_ENVIRONMENTS"] = str(tmp_path_factory.mktemp("environments"))
    yield
    if before is None:
        del os.environ["AGENTC_ENVIRONMENTS"]
    else:
        os.environ["AGENTC_ENVIRONMENTS"] = before


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[TinyPlan]:
    """An empty plan; when the test is over, none of its processes may be left."""
    tiny = TinyPlan(tmp_path)
    yield tiny
    wait_for(lambda: not processes_of(tiny.store), timeout=10)
