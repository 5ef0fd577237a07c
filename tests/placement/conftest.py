"""Lets the tests of this folder import `toy_plan` of the plan tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "plan"))
