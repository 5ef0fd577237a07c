"""Lets the tests of this folder import `toy_plan`, which the tests of plans made."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parents[1] / "plan"))

# The machines of CI are shared; a slow moment is no failure.
settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")
