"""A tiny plan and an empty software stack: see tests/support/tiny_plan_fixtures.py. And an
empty store."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import pytest
from tiny_plan_fixtures import empty_folder, plan, shared_environments

from agentc.runtime.store.layout import StoreLayout

__all__ = ["empty_folder", "plan", "shared_environments"]


@pytest.fixture
def layout(tmp_path: Path) -> StoreLayout:
    (tmp_path / "store").mkdir()
    return StoreLayout(tmp_path / "store")
