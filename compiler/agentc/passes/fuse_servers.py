"""fuse_servers: join jobs that need the same server into sessions, so that it starts once.

Two jobs need the same server when the lease of role "policy" serves the same checkpoint and
starts the same program in the same way. Jobs are joined only where no circle can come
of it: those of one depth in the graph, where an edge leads to a greater depth unless it joins two
jobs on the same server. So a search and the revision of its trees share a start, and the joined
graph stays acyclic whatever else is joined: edges between sessions lead to a greater depth.
A server that `share_servers` made one of its own is shared already.

Requires: keys, shared servers.
Ensures: each session has two or more members with distinct keys, in topological order, none of
which depends on another through a job outside; a job is a member of at most one session.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.lease_roles import FUSED_ROLES
from agentc.passes.context import PassContext
from agentc.passes.unit import Unit
from agentc.plan.canonical import CanonicalTexts
from agentc.plan.job import Job, Lease, Plan, Session
from agentc.plan.keys import lease_text, session_key
from agentc.plan.render import record

(ROLE,) = FUSED_ROLES


def fuse_servers(unit: Unit, context: PassContext) -> Unit:
    """Find the groups and name each after the checkpoint that it serves."""
    if unit.plan is None:
        return unit
    sessions: list[Session] = []
    names: dict[str, int] = {}
    for members in _groups(unit.plan):
        served = members[0].draft.inputs[_served_role(members[0])][0]
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
    servers: dict[str, tuple[str, str]] = {}
    started: dict[int, str] = {}
    texts = CanonicalTexts()
    seen: set[str] = set()
    groups: dict[tuple[tuple[str, str], int], list[Job]] = {}
    for job in plan.jobs:
        lease = job.lease(ROLE)
        server = None
        own = lease is not None and lease.draft.port != "none" and not lease.server
        if lease is not None and own and lease.draft.input is not None:
            if id(lease) not in started:  # the plan keeps its leases, so that ids stay their own
                started[id(lease)] = _started(lease)
            served = lease_text(lease, job.draft.inputs, plan.environments, keys, texts)
            servers[job.id] = server = (served, started[id(lease)])
        depths[job.id] = max(
            (depths[name] + (servers.get(name) != server or server is None)
             for name in job.parents()), default=1,
        )  # fmt: skip
        # Jobs with one key are one object; the first of them stands for all.
        if server is not None and job.key not in seen:
            seen.add(job.key)
            groups.setdefault((server, depths[job.id]), []).append(job)
    return [group for group in groups.values() if len(group) > 1]


def _started(lease: Lease) -> str:
    """Equal where the same is started in the same way. Equal as far as results go is not enough:
    with fewer GPUs, or more conversations at a time, it would be a second server."""
    return repr({**record(lease), "input": None})


def _served_role(job: Job) -> str:
    lease = job.lease(ROLE)
    assert lease is not None
    assert lease.draft.input is not None
    return lease.draft.input
