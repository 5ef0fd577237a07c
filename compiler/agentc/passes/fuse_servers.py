"""fuse_servers: join jobs that need the same server into sessions, so that it starts once.

Two jobs need the same server when the lease of role "policy" serves the same checkpoint through
the same backend with the same semantic settings. Jobs are joined only where no circle can come
of it: those of one depth in the graph (each edge leads to a greater depth, so the joined graph
stays acyclic whatever else is joined).

Requires: keys.
Ensures: each session has two or more members with distinct keys, none of which depends on
another, directly or through other sessions; a job is a member of at most one session.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.passes.context import PassContext
from agentc.passes.unit import Unit
from agentc.plan.canonical import canonical_text
from agentc.plan.job import Job, Plan, Session
from agentc.plan.keys import lease_identity, session_key

ROLE = "policy"


def fuse_servers(unit: Unit, context: PassContext) -> Unit:
    """Find the groups and name each after the checkpoint that it serves."""
    if unit.plan is None:
        return unit
    sessions: list[Session] = []
    names: dict[str, int] = {}
    for members in _groups(unit.plan):
        served = members[0].inputs[_served_role(members[0])][0]
        names[served] = names.get(served, 0) + 1
        suffix = "" if names[served] == 1 else f".{names[served]}"
        sessions.append(
            Session(
                id=f"serve.{served}{suffix}",
                key=session_key([job.key for job in members]),
                members=tuple(job.id for job in members),
            )
        )
    return replace(unit, plan=replace(unit.plan, sessions=tuple(sessions)))


def _groups(plan: Plan) -> list[list[Job]]:
    keys = {job.id: job.key for job in plan.jobs}
    depths: dict[str, int] = {}
    seen: set[str] = set()
    groups: dict[tuple[str, int], list[Job]] = {}
    for job in plan.jobs:
        # Jobs with one key are one object; the first of them stands for all.
        depths[job.id] = 1 + max((depths[parent] for parent in job.parents()), default=0)
        lease = job.lease(ROLE)
        if lease is None or lease.port == "none" or lease.input is None or job.key in seen:
            continue
        seen.add(job.key)
        identity = lease_identity(lease, job.inputs, plan.environments, keys)
        groups.setdefault((canonical_text(identity), depths[job.id]), []).append(job)
    return [group for group in groups.values() if len(group) > 1]


def _served_role(job: Job) -> str:
    lease = job.lease(ROLE)
    assert lease is not None
    assert lease.input is not None
    return lease.input
