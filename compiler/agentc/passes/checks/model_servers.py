"""Rules about jobs with several model servers: those that act, and those that an environment asks.

Neighbours: `parallel.py` (how one spreads), `docs/design/devices.md` (who of a job sees what).
"""

from __future__ import annotations

from collections.abc import Iterator

from agentc.backend_api.parallel import allocation_of
from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Resource
from agentc.kinds.groups import kinds_where
from agentc.passes.checks.leased_models import POLICY, asked_servers, beside_policy
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import StageContext
from agentc.passes.lowering.leases import attempt_resource
from agentc.text import counted

_ASKING = kinds_where(lambda kind: "environment" in kind.uses)


def own_devices(subject: StageContext, server: Resource) -> int | None:
    """GPUs of one copy of a server that a job of the stage starts by itself; None where none is
    started, for an endpoint of somebody else or a job of its own."""
    placement = {name: value.json for name, value in subject.stage.placement.items()}
    attempt = attempt_resource(server, subject.table, None, allocation_of(placement))
    lease = None if attempt is None else attempt.lease
    if lease is None or lease.port == "none" or lease.scope == "shared":
        return None
    return lease.devices


def model_servers_apart(subject: StageContext) -> Iterator[Finding]:
    """No two model servers that a job starts share a GPU."""
    settings = subject.settings
    gpus, nodes = settings.integer("placement.gpus") or 0, settings.integer("placement.nodes") or 1
    asked = asked_servers(subject)
    acting = subject.module.servers.get(subject.stage.uses.get("server", ""))
    own = {} if acting is None else dict.fromkeys((POLICY, *beside_policy(subject)), acting)
    everybody = {**own, **asked}
    if not gpus or len(everybody) < 2:
        return
    taken = {
        f"{server.name} (as {role})": devices
        for role, server in everybody.items()
        if (devices := own_devices(subject, server)) is not None
    }
    needed = sum(taken.values())
    if len(taken) < 2 or (nodes == 1 and needed <= gpus):
        return
    second = next(iter(asked.values()), acting)
    assert second is not None
    cure = f"give `{second.name}` `scope: shared` and a placement of its own"
    cure += ", or take an endpoint" if asked else ""
    yield Finding(
        message=f"{len(taken)} model servers of `{subject.stage.id}` would share "
        + (f"{nodes} nodes" if nodes > 1 else counted(gpus, "GPU", "GPUs")),
        path="placement.nodes" if nodes > 1 else "placement.gpus",
        notes=()
        if nodes > 1
        else tuple(
            f"{name} takes {counted(devices, 'GPU', 'GPUs')}" for name, devices in taken.items()
        ),
        fix=cure if nodes > 1 else f"set placement.gpus to {needed}; or {cure}",
    )


MODEL_SERVERS: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC667",
            "model servers of one job that would share a GPU",
            "A job may start several model servers: that of the policy, one that its environment "
            "asks (`simulator:`), and those of a critic and its reference that choose among "
            "`candidates`. On one node each gets GPUs of its own out of "
            "`placement.gpus`, so there have to be enough for all of them. Over several nodes they "
            "are not told apart: there one of them has to be a shared server or an endpoint.",
        ),
        kinds=_ASKING,
        check=model_servers_apart,
    ),
)
