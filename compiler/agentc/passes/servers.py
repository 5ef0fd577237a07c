"""share_servers gives each server of scope `node` or `shared` an entry of its own in the plan;
fuse_servers joins jobs that need the same server into sessions, so that it starts once.

Requires: keys (fuse_servers: shared servers too). Ensures: every shared server has an entry, and a
job is a member of at most one session; see the two passes below.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.kinds.field import Json
from agentc.lease_roles import FUSED_ROLES, is_model_server
from agentc.passes.lowering.resources import (
    requested_server_resources,
    server_placement,
    server_resources,
)
from agentc.passes.unit import PassContext, Unit
from agentc.plan.job import Job, Lease, Plan, Server, Session
from agentc.plan.keys import (
    CanonicalTexts,
    canonical_text,
    lease_identity,
    lease_text,
    server_key,
    session_key,
)
from agentc.plan.render import record

JOB = "job"


def share_servers(unit: Unit, context: PassContext) -> Unit:
    """Group the leases, and name each server after its entry and the checkpoint that it serves."""
    plan = unit.plan
    if plan is None or not any(
        lease.draft.scope != JOB for job in plan.jobs for lease in job.leases
    ):
        return unit
    servers: dict[str, Server] = {}
    """By what is the same whoever asks."""
    names: dict[str, int] = {}
    keys = {job.id: job.key for job in plan.jobs}
    jobs: list[Job] = []
    for job in plan.jobs:
        leases: list[Lease] = []
        for lease in job.leases:
            if lease.draft.scope == JOB:
                leases.append(lease)
                continue
            identity, placed = _made_of(job, lease, plan, keys)
            alike = server_key([_without_role(lease, identity), placed])
            known = servers.get(alike)
            if known is None:
                known = _server(server_key([identity, placed]), job, lease, names)
            network = known.network or bool(job.draft.contract.get("network"))
            clients = dict.fromkeys((*known.clients, job.id))
            servers[alike] = replace(known, clients=tuple(clients), network=network)
            leases.append(replace(lease, server=known.id))
        jobs.append(replace(job, leases=tuple(leases)))
    return replace(unit, plan=replace(plan, jobs=tuple(jobs), servers=tuple(servers.values())))


def _without_role(lease: Lease, identity: list[Json]) -> list[Json]:
    """The identity of a model server's lease without its role, which stands first."""
    return [None, *identity[1:]] if is_model_server(lease.draft.role) else identity


def _made_of(job: Job, lease: Lease, plan: Plan, keys: dict[str, str]) -> tuple[list[Json], str]:
    """What makes the server of a lease: its identity, and where it runs."""
    identity = lease_identity(lease, job.inputs, plan.software, keys)
    draft = lease.draft
    placed = [list(draft.program), dict(draft.variables), dict(draft.secrets), draft.scope,
              draft.replicas, dict(draft.placement), draft.served_name]  # fmt: skip
    if draft.settings:
        placed.append(dict(draft.settings))
    if draft.ranks is not None:
        placed.append(record(draft.ranks))
    return identity, canonical_text(placed)


def _server(key: str, job: Job, lease: Lease, names: dict[str, int]) -> Server:
    draft = lease.draft
    model = None if draft.input is None else job.inputs[draft.input][0]
    name = f"server/{draft.entry}" + ("" if model is None else f".{model}")
    names[name] = names.get(name, 0) + 1
    return Server(
        id=name if names[name] == 1 else f"{name}.{names[name]}",
        key=key,
        scope=draft.scope,
        replicas=draft.replicas,
        lease=lease,
        model=model,
        resources=server_resources(draft.role, draft.placement),
        placement=server_placement(draft.placement),
        asked=requested_server_resources(draft.role, draft.entry, draft.placement),
        clients=(),
    )


# fuse_servers: join jobs that need the same server into sessions, so that it starts once.
#
# Two jobs need the same server when the lease of role "policy" serves the same checkpoint and
# starts the same program in the same way. Jobs are joined only where no circle can come of it:
# those of one depth in the graph, where an edge leads to a greater depth unless it joins two jobs
# on the same server. So a search and the revision of its trees share a start, and the joined graph
# stays acyclic whatever else is joined: edges between sessions lead to a greater depth. A server
# that `share_servers` made one of its own is shared already.
#
# Requires: keys, shared servers. Ensures: each session has two or more members with distinct keys,
# in topological order, none of which depends on another through a job outside; a job is a member of
# at most one session.

(ROLE,) = FUSED_ROLES


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
    servers: dict[str, tuple[str, str]] = {}
    started: dict[Lease, str] = {}
    texts = CanonicalTexts()
    seen: set[str] = set()
    groups: dict[tuple[tuple[str, str], int], list[Job]] = {}
    for job in plan.jobs:
        lease = job.lease(ROLE)
        server = None
        own = lease is not None and lease.draft.port != "none" and not lease.server
        if lease is not None and own and lease.draft.input is not None:
            if lease not in started:
                started[lease] = _started(lease)
            served = lease_text(lease, job.inputs, plan.software, keys, texts)
            servers[job.id] = server = (served, started[lease])
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
