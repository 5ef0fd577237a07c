"""TimeLeft: how long a whole run still takes, from estimates and from what jobs at work say.

Jobs that wait take what was expected of them, or, where other rounds or cells of their stage are
done, what those took. `cost/summary.py` puts them on the cores that there are.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from agentc.cost.estimate import Estimate
from agentc.cost.summary import wall_left
from agentc.plan.stage_names import of_all_cells
from agentc.run.observe import JobSnapshot

_EVERY_S = 2.0
_OVERDUE = 0.25
"""Of its time so far, a job that takes longer than expected is taken to need so much more."""


class TimeLeft:
    """Call it with the jobs as they are; None where nothing was estimated. It looks anew every two
    seconds, for there may be ten thousand jobs."""

    def __init__(
        self,
        document: Mapping[str, Any],
        estimates: Mapping[str, Estimate],
        cores: int,
        *,
        queued: bool = False,
    ) -> None:
        running = {name: each for name, each in estimates.items() if each.state == "run"}
        self._expected = {name: each.seconds.median for name, each in running.items()}
        self._wall = wall_left(document, running, cores, queued=queued) if running else None
        self._last: float | None = None
        self._when = 0.0

    def __call__(self, jobs: Sequence[JobSnapshot]) -> float | None:
        if self._wall is None:
            return None
        now = time.monotonic()
        if self._last is None or now - self._when >= _EVERY_S:
            self._last, self._when = self._wall(self.seconds(jobs)), now
        return self._last

    def seconds(self, jobs: Sequence[JobSnapshot]) -> dict[str, float]:
        """What each job still takes."""
        took: dict[str, list[float]] = {}
        for seen in jobs:
            if seen.state == "done" and seen.seconds is not None:
                took.setdefault(_alike(seen.id), []).append(seen.seconds)
        found = {}
        for seen in jobs:
            known = took.get(_alike(seen.id))
            expected = fmean(known) if known else self._expected.get(seen.id, 0.0)
            found[seen.id] = 0.0 if seen.state == "done" else _left(seen, expected)
        return found


def _left(seen: JobSnapshot, expected: float) -> float:
    if not seen.active:
        return expected
    if seen.remaining is not None:
        return seen.remaining
    age = seen.seconds or 0.0
    return expected - age if age < expected else _OVERDUE * age


def _alike(name: str) -> str:
    """Jobs of one stage in other rounds and cells have this in common."""
    return re.sub(r"\.\d+\.", ".*.", of_all_cells(name))
