"""How much of this machine's processors is free now: others may be at work on it.

A load average says how many want to run, not what a newcomer gets (control groups and priorities
decide that), so where the load is high it is tried: a few processes compute for a moment.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

from agentc.cost.estimate import PRIOR, Estimate
from agentc.cost.quantity import Z10
from agentc.cost.summary import Band

_IDLE = 0.25
"""Load for each core below which nobody is in the way."""
_TRIED_S = 1.0
_WAITING = 0.2
"""The part of a job's time in which it waits for disks, clocks and servers, whoever computes."""
_SPIN = (
    "import time;a=time.monotonic();b=time.process_time()\n"
    f"while time.monotonic()-a<{_TRIED_S}: sum(range(2000))\n"
    "print((time.process_time()-b)/(time.monotonic()-a))"
)


def share_of_cores(cores: int) -> float:
    """The share, in (0, 1], of so many cores that a run would get if it began now; 1.0 where the
    load is low or it cannot be tried."""
    try:
        if os.getloadavg()[0] < _IDLE * cores:
            return 1.0
        command = [sys.executable, "-I", "-S", "-c", _SPIN]
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for _ in range(cores)
        ]
        shares = [float(each.communicate(timeout=60)[0]) for each in started]
    except (OSError, ValueError, subprocess.SubprocessError):
        return 1.0
    return max(0.02, min(1.0, sum(shares) / cores))


def slowed(estimates: Mapping[str, Estimate], share: float) -> dict[str, Estimate]:
    """What is to run on processors takes longer, but for what waits anyhow, by the share. Times
    that rest on finished jobs stay as they are: those ran beside others as well, as far as anybody
    knows."""
    times = _WAITING + (1 - _WAITING) / share
    return {
        name: replace(each, seconds=each.seconds.times(times))
        if each.state == "run" and not each.gpus and not each.like and each.basis == PRIOR
        else each
        for name, each in estimates.items()
    }


def widened(band: Band, share: float) -> Band:
    """A band of time, wider by what others may do meanwhile: they may leave, or be joined by as
    many. The logarithm's standard deviation that this adds is a third of what they cost now."""
    more = Z10 * math.log(1 / share) / 3

    def factor(ratio: float) -> float:
        return math.exp(math.hypot(math.log(ratio), more))

    if not 0 < band.low <= band.median <= band.high:
        return band
    return Band(
        low=band.median / factor(band.median / band.low),
        median=band.median,
        high=band.median * factor(band.high / band.median),
    )
