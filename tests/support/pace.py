"""How fast this machine is at the moment, for tests that hold a time: a virtual machine may be half
as fast as it was a minute ago, and budgets are those of a machine that nothing disturbs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from agentc.collection import paused_collection

_REFERENCE_S = 0.155
"""What `_work` takes on an Intel Xeon at 2.5 GHz that does nothing else (2026-11-22)."""


def least(measure: Callable[[], float], budget: float, tries: int = 6) -> float:
    """The least of some measurements in seconds, each divided by how slow the machine is around
    it; the first that is within the budget ends the search. What really costs more always does."""
    found = math.inf
    for _ in range(tries):
        before = slowness()
        seconds = measure()
        found = min(found, seconds / max(before, slowness()))
        if found < budget:
            break
    return found


def slowness() -> float:
    """Times by which this machine is slower now; at least 1."""
    return max(1.0, min(_work() for _ in range(3)) / _REFERENCE_S)


@paused_collection()
def _work() -> float:
    """Seconds for building and copying mappings, which is what a compiler does."""
    before = time.process_time()
    for _ in range(3):
        tree: dict[str, dict[str, object]] = {
            f"job {number}": {"number": number, "parts": [str(number), number / 2], "name": None}
            for number in range(15_000)
        }
        for key, value in sorted(tree.items()):
            tree[key] = {
                name: list(each) if isinstance(each, list) else each for name, each in value.items()
            }
    return time.process_time() - before
