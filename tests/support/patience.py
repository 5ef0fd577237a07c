"""How long tests wait for what must happen. Nothing that holds on an idle machine may fail on a
crowded one, so every wait is for an event, and its bound only ends a test that would never end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 600.0
NEVER_S = 10 * PATIENCE_S
"""What lasts so long outlasts every wait: a test that is through did not wait for it."""


def wait_for(condition: Callable[[], Any]) -> Any:
    """Wait until the condition holds and return its value."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"still not after {PATIENCE_S} s: {condition}"
        time.sleep(0.02)
