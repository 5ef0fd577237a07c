"""A tiny plan and an empty software stack (tests/support/tiny_plan_fixtures.py); a wheel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tiny_plan_fixtures import empty_folder, plan, shared_environments
from wheels import write_wheel

__all__ = ["empty_folder", "plan", "shared_environments", "tiny_wheel"]


@pytest.fixture
def tiny_wheel(tmp_path: Path) -> Path:
    """A wheel with one module."""
    return write_wheel(tmp_path, "tinything", "1.2", {"tinything.py": "VALUE = 42\n"})
