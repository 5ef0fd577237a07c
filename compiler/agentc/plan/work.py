"""What a run would do: which jobs the store has, which must run, and how many servers start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    states: Mapping[str, State]
    server_starts: int
    saved_starts: int

    def count(self, state: State) -> int:
        """How many jobs are in a state."""
        return sum(found == state for found in self.states.values())


def plan_work(plan: Plan, is_published: Callable[[str], bool]) -> Work:
    """Compare a plan with a store. `is_published` takes an object (`<kind>/<key>`)."""
    present = {job.id: is_published(job.object) for job in plan.jobs}
    wanted = _wanted(plan, present)
    states: dict[str, State] = {
        job.id: "cached" if present[job.id] else "run" if job.id in wanted else "unneeded"
        for job in plan.jobs
    }
    member_of = {member: session.id for session in plan.sessions for member in session.members}
    serving = [job for job in _distinct(plan) if states[job.id] == "run" and _starts_server(job)]
    starts = {member_of.get(job.id, job.id) for job in serving}
    return Work(states=states, server_starts=len(starts), saved_starts=len(serving) - len(starts))


def _wanted(plan: Plan, present: Mapping[str, bool]) -> set[str]:
    """Ids that a run looks at: targets, and what missing ones read. A session that runs makes
    all members that are missing."""
    members = {member: session.members for session in plan.sessions for member in session.members}
    jobs = plan.by_id()
    wanted: set[str] = set()
    pending = list(plan.targets)
    while pending:
        name = pending.pop()
        if name in wanted:
            continue
        wanted.add(name)
        if not present[name]:
            pending += [*jobs[name].parents(), *members.get(name, ())]
    return wanted


def _distinct(plan: Plan) -> list[Job]:
    """One job for each key."""
    seen: dict[str, Job] = {}
    for job in plan.jobs:
        seen.setdefault(job.object, job)
    return list(seen.values())


def _starts_server(job: Job) -> bool:
    lease = job.lease("policy")
    return lease is not None and lease.port != "none"
