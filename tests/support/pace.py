"""How fast this machine is at the moment, for tests that hold a time: a virtual machine may be half
as fast as it was a minute ago, and budgets are those of a machine that is not."""

from __future__ import annotations

import time

_REFERENCE_S = 0.22
"""What the loop below takes on the machine that the budgets are for: one that takes 0.26 s needs
1.2 times as long for `agentc check` as the figures in docs/benchmarks.md say."""


def slowness() -> float:
    """Times by which this machine is slower now; at least 1."""
    return max(1.0, min(_loop() for _ in range(3)) / _REFERENCE_S)


def _loop() -> float:
    before = time.process_time()
    total = 0
    for number in range(3_000_000):
        total += number * number
    return time.process_time() - before
