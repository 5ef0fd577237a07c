"""Puts the helpers beside these tests, and the shared server checks, on the path."""

import sys
from pathlib import Path

_HERE = Path(__file__).parent
sys.path[:0] = [str(_HERE), str(_HERE.parents[1] / "backends" / "servers")]
