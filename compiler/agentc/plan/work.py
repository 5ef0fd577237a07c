"""What a run would do: which jobs the store has, which must run, and how many servers start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentc.plan.job import Job, Plan

State: TypeAlias = Literal["cached", "run", "unneeded"]
"""cached: the store has it. run: missing and wanted. unneeded: missing, but nothing that must run
reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """`states` by job id, in plan order. `server_starts` counts model servers that would start,
    `saved_starts` those that sessions spare."""

    states: dict[str, State]
    server_starts: int
    saved_starts: int

    def count(self, state: State) -> int:
        """How many jobs are in a state."""
        return sum(found == state for found in self.states.values())


def plan_work(plan: Plan, is_published: Callable[[str], bool]) -> Work:
    """Compare a plan with a store. `is_published` takes an object (`<kind>/<key>`)."""
    jobs = plan.by_id()
    present = {job.id: is_published(job.object) for job in plan.jobs}
    wanted = set(plan.targets)
    for job in reversed(plan.jobs):
        if job.id in wanted and not present[job.id]:
            wanted.update(job.parents())
    states: dict[str, State] = {
        job.id: "cached" if present[job.id] else "run" if job.id in wanted else "unneeded"
        for job in plan.jobs
    }
    member_of = {member: session.id for session in plan.sessions for member in session.members}
    serving = [
        job for job in _distinct(plan) if states[job.id] == "run" and _starts_server(jobs[job.id])
    ]
    starts = {member_of.get(job.id, job.id) for job in serving}
    return Work(states=states, server_starts=len(starts), saved_starts=len(serving) - len(starts))


def _distinct(plan: Plan) -> list[Job]:
    """One job for each key."""
    seen: dict[str, Job] = {}
    for job in plan.jobs:
        seen.setdefault(job.object, job)
    return list(seen.values())


def _starts_server(job: Job) -> bool:
    lease = job.lease("policy")
    return lease is not None and lease.port != "none"
