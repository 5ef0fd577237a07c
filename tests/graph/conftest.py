"""Lets the tests of this folder import `toy_plan`, which the tests of plans made."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "plan"))
