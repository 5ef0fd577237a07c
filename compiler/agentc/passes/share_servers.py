"""share_servers: give each server of scope `node` or `shared` an entry of its own in the plan.

Jobs share one when the lease is the same in all that makes it run: what enters keys, and where the
spec wants it. What serves whom is placement: no job's key depends on it.

Requires: keys.
Ensures: each lease with a scope beyond its job names one server of the plan, whose clients are the
jobs that lease it, in the plan's order.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.passes.context import PassContext
from agentc.passes.size import server_asked, server_placement, server_resources
from agentc.passes.unit import Unit
from agentc.plan.canonical import canonical_text
from agentc.plan.job import Job, Lease, Plan, Server
from agentc.plan.keys import lease_identity, server_key

JOB = "job"


def share_servers(unit: Unit, context: PassContext) -> Unit:
    """Group the leases, and name each server after its entry and the checkpoint that it serves."""
    plan = unit.plan
    if plan is None or not any(lease.scope != JOB for job in plan.jobs for lease in job.leases):
        return unit
    servers: dict[str, Server] = {}
    names: dict[str, int] = {}
    keys = {job.id: job.key for job in plan.jobs}
    jobs: list[Job] = []
    for job in plan.jobs:
        leases: list[Lease] = []
        for lease in job.leases:
            if lease.scope == JOB:
                leases.append(lease)
                continue
            key = _key(job, lease, plan, keys)
            known = servers.get(key)
            if known is None:
                known = _server(key, job, lease, names)
            network = known.network or bool(job.contract.get("network"))
            servers[key] = replace(known, clients=(*known.clients, job.id), network=network)
            leases.append(replace(lease, server=known.id))
        jobs.append(replace(job, leases=tuple(leases)))
    return replace(unit, plan=replace(plan, jobs=tuple(jobs), servers=tuple(servers.values())))


def _key(job: Job, lease: Lease, plan: Plan, keys: dict[str, str]) -> str:
    identity = lease_identity(lease, job.inputs, plan.environments, keys)
    placed = [list(lease.program), dict(lease.variables), dict(lease.secrets), lease.scope,
              lease.replicas, dict(lease.placement), lease.served_name]  # fmt: skip
    if lease.ranks:
        placed.append(dict(lease.ranks))
    return server_key([identity, canonical_text(placed)])


def _server(key: str, job: Job, lease: Lease, names: dict[str, int]) -> Server:
    model = None if lease.input is None else job.inputs[lease.input][0]
    name = f"server/{lease.entry}" + ("" if model is None else f".{model}")
    names[name] = names.get(name, 0) + 1
    return Server(
        id=name if names[name] == 1 else f"{name}.{names[name]}",
        key=key,
        scope=lease.scope,
        replicas=lease.replicas,
        lease=lease,
        model=model,
        resources=server_resources(lease.role, lease.placement),
        placement=server_placement(lease.placement),
        asked=server_asked(lease.role, lease.entry, lease.placement),
        clients=(),
    )
