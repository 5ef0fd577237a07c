"""Model servers that an environment's server asks by itself: whether its entry names those that the
lease of its settings needs, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentc.backend_api import (
    BackendTable,
    EnvironmentBackend,
    LeaseDraft,
    Refusal,
    ServerBackend,
    SimulatorRole,
)
from agentc.ir.module import Resource

REMOTE = "remote"


def undeclared_needs(backend: EnvironmentBackend, lease: LeaseDraft) -> str | None:
    """What is wrong with a backend whose lease needs what its declaration does not know."""
    known = {role.name for role in backend.simulators}
    lost = [role for role in lease.needs if role not in known]
    return f"its lease needs {', '.join(lost)}, which `simulators` lacks" if lost else None


def needless(entry: Resource, lease: LeaseDraft) -> tuple[str, ...]:
    """Servers that the entry names and nobody asks under its settings."""
    return tuple(role for role in entry.simulators if role not in lease.needs)


def server_refusals(
    entry: Resource,
    backend: EnvironmentBackend,
    lease: LeaseDraft,
    servers: Mapping[str, Resource],
    table: BackendTable,
) -> Iterator[Refusal]:
    """What is missing or cannot be of the servers that an environment's lease needs."""
    if lease.needs and lease.scope != "job":
        names = [entry.simulator_server(role) or role for role in lease.needs]
        yield Refusal(
            path="scope",
            reason=f"its server calls {' and '.join(names)} for the job that it serves, so each "
            "job starts its own",
            fix=f"remove `scope`; {names[0]} itself may have `scope: shared`",
        )
    for role in backend.simulators:
        if role.name not in lease.needs:
            continue
        if role.name not in entry.simulators:
            yield Refusal(
                path=role.name,
                reason=f"with these settings it calls a model server as `{role.name}`",
                fix=f"write `{role.name}: {{server: NAME, model: NAME}}`",
            )
            continue
        name = entry.simulator_server(role.name)
        server = None if name is None else servers.get(name)
        served = None if server is None else table.backends.get(server.backend)
        if isinstance(served, ServerBackend):
            yield from _misfits(entry, role, f"`{name}`", served)


def _misfits(
    entry: Resource, role: SimulatorRole, name: str, server: ServerBackend
) -> Iterator[Refusal]:
    if role.capability not in server.capabilities:
        yield Refusal(
            path=f"{role.name}.server",
            reason=f"its `{role.name}` has to have the capability `{role.capability}`, which "
            f"{name} ({server.id}) lacks",
            fix="name another server",
        )
    model = entry.simulator_model(role.name)
    if REMOTE in server.capabilities and model is not None:
        yield Refusal(
            path=f"{role.name}.model",
            reason=f"{name} ({server.id}) is external endpoint, which serves its own model",
            fix="remove `model`",
        )
    if REMOTE not in server.capabilities and model is None:
        yield Refusal(
            path=f"{role.name}.model",
            reason=f"{name} ({server.id}) serves a model of the spec, and none is named",
            fix="write `model: NAME` beside `server`",
        )
