"""share_servers: give each server of scope `node` or `shared` an entry of its own in the plan.

Jobs share one when the lease is the same in all that makes it run: what enters keys, and where the
spec wants it. A model server is the same one whoever asks it: a policy and the model that plays
somebody in its world may be one. What serves whom is placement: no job's key depends on it.

Requires: keys.
Ensures: each lease with a scope beyond its job names one server of the plan, whose clients are the
jobs that lease it, in the plan's order.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.kinds.field import Json
from agentc.lease_roles import is_model_server
from agentc.passes.context import PassContext
from agentc.passes.lowering.resources import server_asked, server_placement, server_resources
from agentc.passes.unit import Unit
from agentc.plan.canonical import canonical_text
from agentc.plan.job import Job, Lease, Plan, Server
from agentc.plan.keys import lease_identity, server_key
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
            alike = server_key([_whoever_asks(lease, identity), placed])
            known = servers.get(alike)
            if known is None:
                known = _server(server_key([identity, placed]), job, lease, names)
            network = known.network or bool(job.draft.contract.get("network"))
            clients = dict.fromkeys((*known.clients, job.id))
            servers[alike] = replace(known, clients=tuple(clients), network=network)
            leases.append(replace(lease, server=known.id))
        jobs.append(replace(job, leases=tuple(leases)))
    return replace(unit, plan=replace(plan, jobs=tuple(jobs), servers=tuple(servers.values())))


def _whoever_asks(lease: Lease, identity: list[Json]) -> list[Json]:
    """The identity of a model server's lease without its role, which stands first."""
    return [None, *identity[1:]] if is_model_server(lease.draft.role) else identity


def _made_of(job: Job, lease: Lease, plan: Plan, keys: dict[str, str]) -> tuple[list[Json], str]:
    """What makes the server of a lease: its identity, and where it runs."""
    identity = lease_identity(lease, job.draft.inputs, plan.environments, keys)
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
    model = None if draft.input is None else job.draft.inputs[draft.input][0]
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
        asked=server_asked(draft.role, draft.entry, draft.placement),
        clients=(),
    )
