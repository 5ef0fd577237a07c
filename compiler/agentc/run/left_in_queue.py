"""What killed runs left in SLURM's queue, for `agentc status`: asked of SLURM itself, since nobody
keeps a record of it any more. Neighbour: inherit.py (what the next run does with them)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from agentc.placement.profile import SLURM
from agentc.plan.work import Work
from agentc.run import slurm_queue
from agentc.run.active import ActiveRun
from agentc.run.slurm_endings import Ending, ids_of
from agentc.run.slurm_reasons import hint, numbers_text, why_never
from agentc.run.waiting_record import NOTHING, SUSPENDED, Waiting, WaitingJobs


def left_in_queue(dead: Iterable[ActiveRun], work: Work) -> tuple[WaitingJobs, str]:
    """Which jobs of the plan wait there, and a line for people; "" where nothing is left."""
    tokens = [run.token for run in dead if run.queue == SLURM]
    if not tokens:
        return NOTHING, ""
    try:
        jobs = slurm_queue.queued_jobs(tokens)
    except slurm_queue.QueueError as error:
        return NOTHING, f"a run was killed; what it left in the queue is not known: {error}"
    now = time.time()
    waiting = {
        name: Waiting(
            number=job.id,
            state=job.state,
            reason="" if job.reason == "None" else job.reason,
            since=now,
            remedy=why_never(job.reason) or hint(job.reason),
        )
        for job in jobs
        if job.state in ("PENDING", SUSPENDED) and job.unit and not job.unit.endswith("/*")
        for name in ids_of(Ending("", job.unit, ""), work)
    }
    if not jobs:
        return NOTHING, ""
    states = ", ".join(
        f"{n} {state}" for state, n in sorted(Counter(j.state for j in jobs).items())
    )
    verb = "is" if len(jobs) == 1 else "are"
    return WaitingJobs(waiting, now), (
        f"a run was killed, and its {numbers_text(job.id for job in jobs)} {verb} in SLURM's queue "
        f"({states}); `agentc run` waits for what it needs of them, `agentc cancel` ends them"
    )
