"""How long jobs are expected to take, against the time limit that they get.

Nothing is asked for here: docs/design/memory.md says why a limit is the spec's or the profile's to
give, and an estimate is only told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from agentc.cost import Estimate
from agentc.placement import ResolvedRequest
from agentc.preflight.finding import PreflightFinding
from agentc.text import shown_time

_MARGIN = 1.25
"""Of a limit above what nine of ten such jobs are expected to take."""
_STEP_MIN = 10


def check_minutes(
    settled: Sequence[ResolvedRequest], estimates: Mapping[str, Estimate]
) -> Iterator[PreflightFinding]:
    """A job that will probably be cut off, or may well be where like jobs were measured."""
    for each in settled:
        minutes = each.number("minutes")
        known = [found for job in each.jobs if (found := estimates.get(str(job["id"])))]
        if minutes is None or not known:
            continue
        # Members of a session run beside each other.
        longest = max(known, key=lambda one: one.seconds.median)
        seconds, limit = longest.seconds, 60 * minutes
        if seconds.median <= limit and (seconds.high <= limit or not longest.like):
            continue
        wanted = math.ceil(_MARGIN * seconds.high / 60 / _STEP_MIN) * _STEP_MIN
        yield PreflightFinding(
            check="time",
            verdict="warning",
            message=f"{longest.stage} is expected to take {shown_time(seconds.median)} "
            f"({shown_time(seconds.low)} to {shown_time(seconds.high)}; {longest.basis}), and gets "
            f"{minutes} min ({each.placed['minutes'].source})",
            about=(longest.stage,),
            fix="a job that is cut off goes on from what it saved, as often as `retries` allows; "
            f"to spare that set `placement: {{minutes: {wanted}}}` (it changes no key)",
        )
