"""The model servers that a stage's jobs lease, and rules about jobs with several of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from agentc.backend_api import ServerBackend, StageBackend
from agentc.backend_api.parallel import allocation_of
from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Resource
from agentc.kinds import kind_named
from agentc.kinds.artifacts import CHECKPOINT, CRITIC_CHECKPOINT
from agentc.kinds.table import kinds_where
from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, StageContext
from agentc.passes.lowering.leases import attempt_resource
from agentc.text import counted

POLICY = "policy"
"""The role of the lease of a stage's own server."""
ACTOR = "model"
"""The input that is the model which acts."""
BESIDE = ("critic", "reference")
"""Roles of more servers of the same entry, where a critic chooses among candidates; each is an
input, and what the entry says holds for all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedModelServer:
    """A server with the inputs of the stage whose models it loads, one at a time (`models`).
    `place` says what machine it gets: the stage, or the server's entry where that is a job of its
    own. `who` and `whose` name it and who wants it, for messages."""

    role: str
    backend: ServerBackend
    settings: Settings
    place: Settings
    models: tuple[str, ...]
    who: str
    whose: str

    @property
    def is_shared(self) -> bool:
        """Whether it is a job of its own."""
        return self.settings.text("scope") == "shared"


def leased_servers(subject: StageContext) -> tuple[LeasedModelServer, ...]:
    """The stage's own server first, then those of its environment; without endpoints of others,
    which load nothing."""
    return subject.derive(_leased_servers)


def _leased_servers(subject: StageContext) -> tuple[LeasedModelServer, ...]:
    stage = subject.stage
    servers: list[LeasedModelServer] = []
    own = None if _loads_its_model(subject) else subject.server()
    if own is not None and "remote" not in own[0].capabilities:
        servers.append(_leased(subject, POLICY, own, _served(subject), f"`{stage.id}`"))
    for role, entry in simulator_servers(subject).items():
        server = subject.servers.get(entry.name)
        if server is not None and "remote" not in server[0].capabilities:
            whose = f"the environment `{stage.uses.get('environment')}`"
            servers.append(_leased(subject, role, server, (role,), whose))
    return tuple(servers)


def beside_policy(subject: StageContext) -> tuple[str, ...]:
    """The roles of the servers that a stage leases besides, of the entry of its own. A reference
    that is the policy has none: the policy's server is asked."""
    inputs = subject.stage.inputs
    several = (subject.settings.integer("candidates") or 1) > 1
    if not several or not inputs.get("critic") or not inputs.get(ACTOR):
        return ()
    apart = inputs.get("reference") not in (None, (), inputs[ACTOR])
    return BESIDE if apart else BESIDE[:1]


def simulator_servers(subject: StageContext) -> dict[str, Resource]:
    """By role, the entries of the servers that the environment of a stage asks."""
    entry = subject.module.environments.get(subject.stage.uses.get("environment", ""))
    found: dict[str, Resource] = {}
    for role in () if entry is None else entry.simulators:
        name = None if entry is None else entry.simulator_server(role)
        server = subject.module.servers.get(name or "")
        if server is not None:
            found[role] = server
    return found


def _leased(
    subject: StageContext,
    role: str,
    server: tuple[ServerBackend, Settings],
    models: tuple[str, ...],
    whose: str,
) -> LeasedModelServer:
    backend, settings = server
    shared = settings.text("scope") == "shared"
    named = shared or role != POLICY
    return LeasedModelServer(
        role=role,
        backend=backend,
        settings=settings,
        place=settings if shared else subject.settings,
        models=models,
        who=f"the server `{settings.name}`" if named else f"the server of {whose}",
        whose=whose,
    )


def _loads_its_model(subject: StageContext) -> bool:
    """Whether the program does without a server, though stages of its kind may name one."""
    backend = subject.table.backends.get(subject.stage.backend)
    return isinstance(backend, StageBackend) and "value_head" in backend.capabilities


def _served(subject: StageContext) -> tuple[str, ...]:
    """The inputs that are models: one that acts, or a critic and its reference."""
    inputs = subject.stage.inputs
    return tuple(role for role in _model_roles(subject.stage.kind) if inputs.get(role))


@cache
def _model_roles(kind: str) -> tuple[str, ...]:
    found, models = kind_named(kind), (CHECKPOINT, CRITIC_CHECKPOINT)
    roles = () if found is None else found.roles
    return tuple(role.name for role in roles if any(each in models for each in role.accepts))


# Rules about jobs with several model servers: those that act, and those that an environment asks.

_ASKING = kinds_where(lambda kind: "environment" in kind.uses)


def local_server_devices(subject: StageContext, server: Resource) -> int | None:
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
    asked = simulator_servers(subject)
    acting = subject.module.servers.get(subject.stage.uses.get("server", ""))
    own = {} if acting is None else dict.fromkeys((POLICY, *beside_policy(subject)), acting)
    everybody = {**own, **asked}
    if not gpus or len(everybody) < 2:
        return
    taken = {
        f"{server.name} (as {role})": devices
        for role, server in everybody.items()
        if (devices := local_server_devices(subject, server)) is not None
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
            "calls (`simulator:`), and those of a critic and its reference that choose among "
            "`candidates`. On one node each gets GPUs of its own out of "
            "`placement.gpus`, so there have to be enough for all of them. Over several nodes they "
            "are not distinguished: there one of them has to be a shared server or an endpoint.",
        ),
        kinds=_ASKING,
        check=model_servers_apart,
    ),
)
