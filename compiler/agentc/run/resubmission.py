"""Which jobs that the cluster cut off are submitted again: as long as they get further, and as
often as `placement: {retries: ...}` allows. Neighbours: slurm_endings.py, drive.py."""

from __future__ import annotations

from collections import Counter

from agentc.placement.precedence import retries_of
from agentc.plan.work import Work
from agentc.run.slurm_endings import Ending, ids_of, progress_of


class Resubmissions:
    """Those of one run, job by job."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._jobs = {str(job["id"]): job for job in work.document["jobs"]}
        self._reached: dict[str, float] = {}
        self._submitted: Counter[str] = Counter()
        self._there: set[str] = set()

    def decide(self, ending: Ending) -> tuple[bool, str]:
        """Whether the job of an ending that is worth it is submitted again, with a sentence for
        people. Call it once for each."""
        message, unit = ending.sentence(self._work), ending.unit
        if ending.done:
            # A second time the store is not what Snakemake misses.
            if unit in self._there:
                return False, message
            self._there.add(unit)
            return True, f"{message}; what it was to make is in the store already: going on"
        got_on = self._got_on(ending)
        retries = retries_of([self._jobs[name] for name in ids_of(ending, self._work)])
        if self._submitted[unit] >= retries:
            return False, f"{message}; {_bound(retries)}"
        if not got_on:
            return (
                False,
                f"{message}; it got no further than the last time, so it is not submitted again",
            )
        self._submitted[unit] += 1
        count = f"{self._submitted[unit] + 1} of at most {retries + 1}"
        return True, f"{message}; submitting it again, to go on where it was cut off ({count})"

    def _got_on(self, ending: Ending) -> bool:
        """Whether it got further than at its last ending; the first one is always worth another."""
        done = progress_of(ending, self._work)
        before = self._reached.get(ending.unit)
        self._reached[ending.unit] = done
        return before is None or done > before or not ending.limited


def _bound(retries: int) -> str:
    if retries == 0:
        return (
            "it is not submitted again, for `placement:` says `retries: 0`. Another `agentc run` "
            "goes on where it was cut off"
        )
    times = "once" if retries == 1 else f"{retries} times"
    return (
        f"it was submitted again {times}, and no more are allowed. Give it longer (`placement: "
        "{minutes: ...}`) or more of them (`retries`); another `agentc run` goes on where it was "
        "cut off"
    )
