"""A tiny plan and an empty software stack: see tests/support/tiny_plan_fixtures.py."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from tiny_plan_fixtures import empty_folder, plan, shared_environments

__all__ = ["empty_folder", "plan", "shared_environments"]
