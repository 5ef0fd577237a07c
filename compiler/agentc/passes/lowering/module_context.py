"""What a lowering asks of the spec besides its stage: leases of environments and servers, which
their backends draft here, prompts, files and claims.

Neighbour: `trial.py`, which lowers stages by it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from agentc.backend_api import (
    BackendTable,
    EnvironmentBackend,
    LeaseDraft,
    OptionView,
    Refusal,
    ServerBackend,
    StageBackend,
    StageView,
)
from agentc.backend_api.parallel import GPU, MULTINODE, ONE_NODE, Room, allocation_of
from agentc.backend_api.view import Lookups, Setting, given_paths
from agentc.ir.module import Module, Prompt, Resource, Stage, Value
from agentc.kinds import KINDS
from agentc.kinds.field import Field, Json
from agentc.lock.references import OutsideReferences
from agentc.passes.lowering.asked_servers import needless, undeclared_needs, wrongly_asked
from agentc.passes.lowering.experiment import experiment_facts
from agentc.runtime.lease_roles import FUSED_ROLES, LeaseRole, is_model_server
from agentc.runtime.store.content import OutsideLinkError, content_digest
from agentc.source.boundary import Boundary, OutsideError
from agentc.source.characters import strip_forbidden

if TYPE_CHECKING:
    from agentc.passes.lowering.trial import LoweringTrial

_FIELDS = {kind.name: kind.fields for kind in KINDS}
_MOST_BYTES = 16 << 20
"""The largest file that a setting may name for its content to be read while compiling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathEscape:
    """A setting (None: a text that is no setting) that names a place which the spec may not."""

    setting: str | None
    place: str


class MissingResourceError(Exception):
    """A stage lacks an environment or server; an earlier pass has said so already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAttempt:
    """What an environment or server backend made of its entry in the spec; of an environment's,
    the declaration that holds under the entry's settings."""

    backend: EnvironmentBackend | ServerBackend
    lease: LeaseDraft | None = None
    unread: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    outside: PathEscape | None = None


@dataclass(frozen=True, slots=True)
class GivenValues:
    """What stages set that hold the same values, with what their views have looked up; `paths` are
    those of the leaves."""

    values: Mapping[str, Json]
    paths: tuple[str, ...]
    lookups: Lookups


class ModuleContext:
    """The LowerContext of a module: answers from its environments, servers and prompts.

    Leases are drafted once for each entry, and for each input that one serves. `tried` keeps what
    came of the lowering of equal stages (`trial.py`), `seen` what leases held that was looked
    through. `asked` records which of environment, server and prompt the lowering of `stage` asked
    for.
    """

    def __init__(
        self,
        module: Module,
        table: BackendTable,
        boundary: Boundary,
        references: OutsideReferences | None = None,
    ) -> None:
        self._module = module
        self._table = table
        self._leases: dict[tuple[str, str, Room], ResourceAttempt | None] = {}
        self._boundary = boundary
        self._tables: dict[tuple[str, str], tuple[tuple[Field, ...], dict[str, Setting]]] = {}
        self._given: dict[tuple[str, str, int, int], GivenValues] = {}
        self._serving: dict[tuple[int, str, LeaseRole], LeaseDraft] = {}
        self._references = OutsideReferences() if references is None else references
        self.asked: set[str] = set()
        self.stage: Stage | None = None
        self.tried: dict[Hashable, LoweringTrial] = {}
        self.seen: dict[int, object] = {}

    def environment_lease(self, stage: StageView) -> LeaseDraft:
        attempt = self._used(stage, "environment")
        if attempt is None or attempt.lease is None:
            raise MissingResourceError("environment")
        return attempt.lease

    def environment_facts(self, stage: StageView) -> Mapping[str, Json]:
        attempt = self._used(stage, "environment")
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
        return self._served(self._used(stage, "server"), checkpoint_role, role)

    def needed_leases(self, stage: StageView) -> tuple[LeaseDraft, ...]:
        asking = None if self.stage is None else self.stage.uses.get("environment")
        entry = self._module.environments.get(asking or "")
        found = []
        for role in self.environment_lease(stage).needs:
            name = None if entry is None else entry.asked_server(role)
            server = None if name is None else self.resource("server", name, self._room())
            found.append(self._served(server, role, role))
        return tuple(found)

    def _served(
        self, attempt: ResourceAttempt | None, checkpoint_role: str, role: LeaseRole
    ) -> LeaseDraft:
        if attempt is None or attempt.lease is None:
            raise MissingResourceError("server")
        key = (id(attempt), checkpoint_role, role)  # attempts are kept as long as this context
        if key not in self._serving:
            # A remote endpoint serves what it serves.
            served = None if attempt.lease.port == "none" else checkpoint_role
            lease = replace(attempt.lease, role=role, input=served)
            if role not in FUSED_ROLES and lease.copies == "auto":
                lease = replace(lease, copies=None)  # not two servers that both take all the rest
            self._serving[key] = lease
        return self._serving[key]

    def prompt(self, stage: StageView) -> Prompt | None:
        self.asked.add("prompt")
        name = None if self.stage is None else self.stage.uses.get("prompt")
        return None if name is None else self._module.prompts.get(name)

    def experiment(self) -> Mapping[str, Json]:
        return {"name": self._module.name, **experiment_facts(self._module)}

    def claims(self) -> tuple[Mapping[str, Json], ...]:
        return tuple(claim.record() for claim in self._module.claims)

    def digest_of(self, path: str) -> str | None:
        known = self._references.files
        if path not in known:
            place = self._boundary.find(path)
            try:
                digest = content_digest(place, self._boundary.holds)
            except OutsideLinkError as link:
                raise OutsideError(path, link.place) from None
            if digest is None:
                return None
            known[path] = digest
        return known[path]

    def is_directory(self, path: str) -> bool:
        return self._boundary.find(path).is_dir()

    def content_of(self, path: str) -> bytes | None:
        """The content of a file that an environment's or server's entry names."""
        place = self._boundary.find(path)
        if self.digest_of(path) is None or not place.is_file():
            return None
        try:
            content = place.read_bytes()
        except OSError:
            return None
        return content if len(content) <= _MOST_BYTES else None

    def pinned_revision(self, repo: str, revision: str) -> str | None:
        return self._references.commit(repo, revision)

    def resource(self, section: str, name: str, room: Room = ONE_NODE) -> ResourceAttempt | None:
        """The drafted lease of an entry of `environments` or `servers`, within a job that has
        `room`; None for one that is not declared or whose backend is unknown."""
        key = (section, name, room)
        if key not in self._leases:
            module = self._module
            entry = (module.environments if section == "environment" else module.servers).get(name)
            attempt = None
            if entry is not None:
                attempt = attempt_resource(entry, self._table, self.content_of, room)
            if entry is not None and attempt is not None and _asks(entry, attempt):
                attempt = _with_asked(entry, attempt, module.servers, self._table)
            self._leases[key] = attempt
        return self._leases[key]

    def fields_of(self, backend: StageBackend) -> tuple[tuple[Field, ...], dict[str, Setting]]:
        """The fields that a stage has on a backend, with what views have looked up in them."""
        name = (backend.kind, backend.id)
        if name not in self._tables:
            self._tables[name] = ((*_FIELDS[backend.kind], *backend.options), {})
        return self._tables[name]

    def given(self, stage: Stage, backend: StageBackend) -> GivenValues:
        """What a stage sets for a backend; the same object for stages that hold the same values,
        as those of many rounds do."""
        # The module keeps the mappings, so that their ids stay their own.
        key = (stage.kind, backend.id, id(stage.fields), id(stage.options))
        if key not in self._given:
            values = stage_values(stage)
            paths = tuple(given_paths(self.fields_of(backend)[0], values))
            self._given[key] = GivenValues(values, paths, Lookups())
        return self._given[key]

    def _used(self, stage: StageView, section: str) -> ResourceAttempt | None:
        self.asked.add(section)
        name = None if self.stage is None else self.stage.uses.get(section)
        if self.stage is None or name is None:
            return None
        return self.resource(section, name, self._room() if section == "server" else ONE_NODE)

    def _room(self) -> Room:
        return ONE_NODE if self.stage is None else allocation_of(_plain(self.stage.placement))


def attempt_resource(
    entry: Resource,
    table: BackendTable,
    files: Callable[[str], bytes | None] | None = None,
    room: Room = ONE_NODE,
) -> ResourceAttempt | None:
    """Draft the lease of an environment or server entry within a job that has `room`; a server
    with a job of its own has what its entry says. None when its backend is unknown."""
    backend = table.backends.get(entry.backend)
    if not isinstance(backend, (EnvironmentBackend, ServerBackend)):
        return None
    values = {**_plain(entry.fields), **_plain(entry.options)}
    sharing = _plain(entry.sharing)
    if sharing.get("scope") == "shared":
        own = sharing.get("placement")
        room = allocation_of(own if isinstance(own, dict) else {})
    elif sharing.get("scope") == "node" or MULTINODE not in backend.capabilities:
        room = (1, None, room[2])
    nodes, gpus, on_gpu = room
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
    if lease is not None:
        if GPU in backend.capabilities and on_gpu and nodes == 1 and not lease.devices:
            lease = replace(lease, devices=1)
        lease = _placed(entry, lease)
        refusals += _misplaced(entry, lease, backend.capabilities)
    return ResourceAttempt(
        backend=declared,
        lease=lease,
        outside=outside,
        unread=tuple(path for path in view.given() if path not in view.read),
        refusals=tuple(dict.fromkeys(refusals)),
        reasons=view.reasons,
        failure=failure,
    )


def _asks(entry: Resource, attempt: ResourceAttempt) -> bool:
    """Whether an environment names a model server, or its lease wants one."""
    return bool(entry.simulators or (attempt.lease is not None and attempt.lease.needs))


def _with_asked(
    entry: Resource,
    attempt: ResourceAttempt,
    servers: Mapping[str, Resource],
    table: BackendTable,
) -> ResourceAttempt:
    """An attempt with what is wrong of the servers that an environment asks."""
    backend, lease = attempt.backend, attempt.lease
    if not isinstance(backend, EnvironmentBackend) or lease is None:
        return attempt
    wrong = tuple(wrongly_asked(entry, backend, lease, servers, table))
    return replace(
        attempt,
        unread=(*attempt.unread, *needless(entry, lease)),
        refusals=(*attempt.refusals, *wrong),
    )


def _placed(entry: Resource, lease: LeaseDraft) -> LeaseDraft:
    """The lease with what the spec says of the server's place."""
    sharing = _plain(entry.sharing)
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
            path="scope", reason="the endpoint is somebody else's: nothing is started that jobs "
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
    named = (name for name, value in values.items() if value == error.written)
    return PathEscape(setting=next(named, None), place=strip_forbidden(str(error.place)))


def _plain(values: Mapping[str, Value]) -> dict[str, Json]:
    return {name: value.json for name, value in values.items()}


def stage_values(stage: Stage) -> dict[str, Json]:
    """What the spec sets: kind fields and backend options in one mapping."""
    return {**_plain(stage.fields), **_plain(stage.options)}
