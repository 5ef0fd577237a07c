"""Leases of a module's environments and servers. They are drafted here, once for each entry and use
of it; who lowers asks here what they hold: the software of a job, whether it has a model on GPUs of
its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from agentc.backend_api import (
    OWN_LOOP,
    BackendTable,
    EnvironmentBackend,
    JobDraft,
    LeaseDraft,
    OptionView,
    Refusal,
    ServerBackend,
    Software,
    StageView,
)
from agentc.backend_api.parallel import GPU, MULTINODE, ONE_NODE, Allocation, allocation_of
from agentc.ir.module import Module, Resource, Stage, Value
from agentc.kinds.field import Json
from agentc.kinds.table import TRAINERS
from agentc.lease_roles import FUSED_ROLES, LeaseRole, is_model_server
from agentc.passes.lowering.simulator_servers import needless, server_refusals, undeclared_needs
from agentc.runtime.machine.hardware import DeviceTaker
from agentc.source.files import OutsideError
from agentc.source.text_checks import strip_forbidden


@dataclass(frozen=True, slots=True, kw_only=True)
class PathEscape:
    """A setting (None: a text that is no setting) that names a place which the spec may not."""

    setting: str | None
    place: str


class MissingResourceError(Exception):
    """A stage lacks an environment or server; an earlier pass has said so already."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResourceAttempt:
    """What an environment or server backend made of its entry in the spec; of an environment's,
    the declaration that holds under the entry's settings."""

    backend: EnvironmentBackend | ServerBackend
    lease: LeaseDraft | None = None
    ignored: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    outside: PathEscape | None = None


class ModuleLeases:
    """The leases that lowerings of a module's stages ask for (`LowerContext`), of which `stage` is
    the one at hand. `asked` records which of environment and server its lowering asked for, `named`
    whether it asked what its inputs are called.
    """

    def __init__(
        self, module: Module, table: BackendTable, files: Callable[[str], bytes | None]
    ) -> None:
        self._entries = {"environment": module.environments, "server": module.servers}
        self._table = table
        self._files = files
        self._attempts: dict[tuple[str, str, Allocation], ResourceAttempt | None] = {}
        self._serving: dict[tuple[ResourceAttempt, str, LeaseRole], LeaseDraft] = {}
        self._inside: dict[LeaseDraft, LeaseDraft] = {}
        self.asked: set[str] = set()
        self.named = False
        self.stage: Stage | None = None

    def begin(self, stage: Stage) -> None:
        """The lowering of another stage begins."""
        self.stage = stage
        self.asked.clear()
        self.named = False

    def input_names(self, stage: StageView, role: str) -> tuple[str, ...]:
        self.named = True
        return () if self.stage is None else self.stage.inputs.get(role, ())

    def environment_lease(self, stage: StageView) -> LeaseDraft:
        attempt = self._used("environment")
        if attempt is None or attempt.lease is None:
            raise MissingResourceError("environment")
        return attempt.lease

    def environment_leases(
        self, stage: StageView, inside_of: tuple[Software, ...] = ()
    ) -> tuple[LeaseDraft, ...]:
        lease = self.environment_lease(stage)
        if OWN_LOOP in self._capabilities():
            stage.refuse(
                "environment",
                f"{lease.backend} is played by a program of its own, never step by step",
                fix=f"give the stage `backend: {lease.backend.removeprefix('env.')}`, of the kind "
                "rollout or evaluate, or another environment",
            )
        if opens_in(lease, inside_of):
            return (self._inside.setdefault(lease, replace(lease, port="inside")),)
        name = "" if self.stage is None else self.stage.uses.get("environment", "")
        entry = self._entries["environment"].get(name)
        found = [lease]
        for role in lease.needs:
            asked = None if entry is None else entry.simulator_server(role)
            server = None if asked is None else self.resource("server", asked, self._allocation())
            found.append(self._served(server, role, role))
        return tuple(found)

    def _capabilities(self) -> frozenset[str]:
        attempt = self._used("environment")
        backend = None if attempt is None else attempt.backend
        return backend.capabilities if isinstance(backend, EnvironmentBackend) else frozenset()

    def environment_facts(self, stage: StageView) -> Mapping[str, Json]:
        attempt = self._used("environment")
        if attempt is None or not isinstance(attempt.backend, EnvironmentBackend):
            raise MissingResourceError("environment")
        backend = attempt.backend
        return {
            "name": backend.id.removeprefix("env."),
            "reward_range": list(backend.reward_range),
            "success_at": backend.success_at,
            "max_turns": backend.max_turns,
            "splits": list(backend.splits),
            "capabilities": [*sorted(backend.capabilities)],
            **({} if backend.reward_name is None else {"reward_name": backend.reward_name}),
        }

    def server_lease(
        self, stage: StageView, checkpoint_role: str, role: LeaseRole = "policy"
    ) -> LeaseDraft:
        return self._served(self._used("server"), checkpoint_role, role)

    def _served(
        self, attempt: ResourceAttempt | None, checkpoint_role: str, role: LeaseRole
    ) -> LeaseDraft:
        if attempt is None or attempt.lease is None:
            raise MissingResourceError("server")
        key = (attempt, checkpoint_role, role)
        if key not in self._serving:
            # A remote endpoint serves what it serves.
            served = None if attempt.lease.port == "none" else checkpoint_role
            lease = replace(attempt.lease, role=role, input=served)
            if role not in FUSED_ROLES and lease.copies == "auto":
                lease = replace(lease, copies=None)  # not two servers that both take all the rest
            self._serving[key] = lease
        return self._serving[key]

    def resource(
        self, section: str, name: str, allocation: Allocation = ONE_NODE
    ) -> ResourceAttempt | None:
        """The drafted lease of an entry of `environments` or `servers`, within a job that has
        `allocation`; None for one that is not declared or whose backend is unknown."""
        key = (section, name, allocation)
        if key not in self._attempts:
            entry = self._entries[section].get(name)
            attempt = None
            if entry is not None:
                attempt = attempt_resource(entry, self._table, self._files, allocation)
            if entry is not None and attempt is not None and _asks(entry, attempt):
                attempt = _with_simulators(entry, attempt, self._entries["server"], self._table)
            self._attempts[key] = attempt
        return self._attempts[key]

    def _used(self, section: str) -> ResourceAttempt | None:
        self.asked.add(section)
        name = None if self.stage is None else self.stage.uses.get(section)
        if name is None:
            return None
        return self.resource(section, name, self._allocation() if section == "server" else ONE_NODE)

    def _allocation(self) -> Allocation:
        return ONE_NODE if self.stage is None else allocation_of(plain(self.stage.placement))


def attempt_resource(
    entry: Resource,
    table: BackendTable,
    files: Callable[[str], bytes | None] | None = None,
    allocation: Allocation = ONE_NODE,
) -> ResourceAttempt | None:
    """Draft the lease of an environment or server entry within a job of that allocation; a server
    with a job of its own has what its entry says. None when its backend is unknown."""
    backend = table.backends.get(entry.backend)
    if not isinstance(backend, (EnvironmentBackend, ServerBackend)):
        return None
    values = {**plain(entry.fields), **plain(entry.options)}
    sharing = plain(entry.sharing)
    if sharing.get("scope") == "shared":
        own = sharing.get("placement")
        allocation = allocation_of(own if isinstance(own, dict) else {})
    elif sharing.get("scope") == "node" or MULTINODE not in backend.capabilities:
        allocation = (1, None, allocation[2])
    nodes, gpus, on_gpu = allocation
    view = OptionView(
        table=backend.fields, values=values, files=files, nodes=nodes, gpus=gpus, on_gpu=on_gpu
    )
    declared = backend
    lease, failure, outside = None, None, None
    try:
        lease = backend.lease(view)
        if isinstance(backend, EnvironmentBackend):
            # What asks others is told where they are by whoever starts it.
            lease = replace(lease, role="environment", inside=lease.inside and not lease.needs)
            failure = undeclared_needs(backend, lease) if lease.needs else None
            declared = backend.under(values)
    except OutsideError as error:
        outside = path_escape(error, values)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    refusals = list(view.refusals)
    ignored: tuple[str, ...] = ()
    if lease is not None:
        # A backend that was stopped on its way has not come to the rest of the settings.
        ignored = tuple(path for path in view.set_paths() if path not in view.read)
        if GPU in backend.capabilities and on_gpu and nodes == 1 and not lease.devices:
            lease = replace(lease, devices=1)
        lease = _placed(entry, lease)
        refusals += _misplaced(entry, lease, backend.capabilities)
    return ResourceAttempt(
        backend=declared,
        lease=lease,
        outside=outside,
        ignored=ignored,
        refusals=tuple(dict.fromkeys(refusals)),
        reasons=view.reasons,
        failure=failure,
    )


def _asks(entry: Resource, attempt: ResourceAttempt) -> bool:
    """Whether an environment names a model server, or its lease wants one."""
    return bool(entry.simulators or (attempt.lease is not None and attempt.lease.needs))


def _with_simulators(
    entry: Resource,
    attempt: ResourceAttempt,
    servers: Mapping[str, Resource],
    table: BackendTable,
) -> ResourceAttempt:
    """An attempt with what is wrong of the servers that an environment asks."""
    backend, lease = attempt.backend, attempt.lease
    if not isinstance(backend, EnvironmentBackend) or lease is None:
        return attempt
    wrong = tuple(server_refusals(entry, backend, lease, servers, table))
    return replace(
        attempt,
        ignored=(*attempt.ignored, *needless(entry, lease)),
        refusals=(*attempt.refusals, *wrong),
    )


def _placed(entry: Resource, lease: LeaseDraft) -> LeaseDraft:
    """The lease with what the spec says of the server's place."""
    sharing = plain(entry.sharing)
    replicas, placement = sharing.get("replicas"), sharing.get("placement")
    scope: Literal["job", "node", "shared"] = "job"
    if sharing.get("scope") in ("node", "shared"):
        scope = "node" if sharing["scope"] == "node" else "shared"
    copies: int | Literal["auto"] | None = replicas if isinstance(replicas, int) else None
    if copies is None and lease.devices and is_model_server(lease.role):
        copies = "auto"
    return replace(
        lease,
        entry=entry.name,
        copies=copies if scope == "job" else None,
        scope=scope,
        replicas=replicas if isinstance(replicas, int) else 1,
        placement=placement if isinstance(placement, dict) else {},
    )


def _misplaced(
    entry: Resource, lease: LeaseDraft, capabilities: frozenset[str]
) -> Iterator[Refusal]:
    """What the spec says of a server's place and has no effect, or cannot be."""
    if lease.scope != "job" and lease.port == "none":
        yield Refusal(
            path="scope", reason="the endpoint is external: nothing is started that jobs "
            "could share", fix="remove `scope`",
        )  # fmt: skip
    several = lease.placement.get("nodes") not in (None, 1)
    if lease.scope == "shared" and several and MULTINODE not in capabilities:
        serves = is_model_server(lease.role)
        role = "a server" if serves else "an environment"
        yield Refusal(
            path="placement.nodes", reason=f"{lease.backend} is {role} of one node",
            fix="leave nodes out" + ("" if not serves else
            "; serve.vllm spreads a model over nodes, and so may an endpoint that somebody starts "
            "(backend: openai)"),
        )  # fmt: skip
    for name in ("replicas", "placement"):
        copied = name == "replicas" and lease.scope == "job" and GPU in capabilities
        if lease.scope != "shared" and name in entry.sharing and not copied:
            yield Refusal(
                path=name, reason=f"only a server of `scope: shared` has {name} of its own; "
                f"with `scope: {lease.scope}` it runs on what the jobs around it were given",
                fix=f"write `scope: shared`, or remove `{name}`",
            )  # fmt: skip


def path_escape(error: OutsideError, values: Mapping[str, Json]) -> PathEscape:
    """The setting among `values` that a backend could not follow."""
    named = (
        name
        for name, value in values.items()
        if value == error.written or (isinstance(value, list) and error.written in value)
    )
    return PathEscape(setting=next(named, None), place=strip_forbidden(str(error.place)))


def plain(values: Mapping[str, Value]) -> dict[str, Json]:
    """Values without their places."""
    return {name: value.json for name, value in values.items()}


def opens_in(lease: LeaseDraft, software: tuple[Software, ...]) -> bool:
    """Whether a program that runs in one of `software` can open it: quick calls, the program's own
    software, nothing that a server alone would be given, and no server that jobs are to share."""
    apart = lease.secrets or lease.variables or lease.input is not None
    return lease.inside and lease.scope == "job" and lease.software in software and not apart


def software_needed(draft: JobDraft) -> tuple[Software, ...]:
    """That of a job's program first, then that of its servers."""
    leased = (lease.software for lease in draft.leases)
    return (draft.software, *(each for each in leased if each is not None))


def served_roles(draft: JobDraft) -> tuple[str, ...]:
    """The inputs whose checkpoints the leases of a job serve."""
    return tuple(lease.input for lease in draft.leases if lease.input is not None)


def holds_model(draft: JobDraft) -> bool:
    """Whether the job trains a model, or starts a server of one within its own resources."""
    return draft.kind in TRAINERS or any(map(is_local_model_server, draft.leases))


def is_local_model_server(lease: LeaseDraft) -> bool:
    """Whether a lease means a model server within the job's own resources."""
    return is_model_server(lease.role) and lease.port != "none" and lease.scope != "shared"


def taker_of(lease: LeaseDraft) -> DeviceTaker:
    """What a lease says of the GPUs that its server takes."""
    return DeviceTaker(lease.role, lease.backend, lease.devices, lease.copies)
