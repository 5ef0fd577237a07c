"""Trial lowering: run one backend on one stage and say what came out and what it did not honour.

Used by `choose_backends` (which candidate honours everything?), by `lower` (the real thing), and
for naming the backends that would honour what the chosen one does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from agentc.backend_api import (
    BackendTable,
    EnvironmentBackend,
    JobDraft,
    LeaseDraft,
    OptionView,
    Refusal,
    ServerBackend,
    StageBackend,
    StageView,
)
from agentc.backend_api.parallel import MULTINODE, ONE_NODE, Room, room_of
from agentc.backend_api.view import Setting
from agentc.ir.module import Module, Prompt, Resource, Stage, Value
from agentc.kinds import KINDS
from agentc.kinds.field import Field, Json
from agentc.lock.references import References
from agentc.passes.experiment import experiment_facts
from agentc.runtime.content import OutsideLinkError, content_digest
from agentc.source.boundary import Boundary, OutsideError
from agentc.source.load import without_forbidden

_KINDS = {kind.name: kind for kind in KINDS}
_MOST_BYTES = 16 << 20
"""The largest file that a setting may name for its content to be read while compiling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """A setting (None: a text that is no setting) that names a place which the spec may not."""

    setting: str | None
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What a backend made of a stage.

    `unread` are dotted paths that the stage sets and no job's view read; `idle` are those that
    it took from the spec's `defaults:` and no view read, `taken` those that one did. `unused` are
    keys among environment, server and prompt that lowering never asked for, `untaken` inputs that
    no job has; `reasons` says of some paths why they are not read; `failure` is the text of an
    exception, which is a bug of the backend.
    """

    backend: StageBackend
    drafts: tuple[JobDraft, ...] = ()
    unread: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    untaken: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    outside: Outside | None = None

    @property
    def honours_all(self) -> bool:
        """Whether nothing of the stage is lost or refused."""
        return not (self.unread or self.unused or self.refusals or self.failure)

    def honours(self, path: str) -> bool:
        """Whether this backend reads the setting at a dotted path and does not refuse it."""
        lost = {
            *self.unread,
            *self.idle,
            *self.unused,
            *(refusal.path for refusal in self.refusals),
        }
        return self.failure is None and path not in lost


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceAttempt:
    """What an environment or server backend made of its entry in the spec."""

    backend: EnvironmentBackend | ServerBackend
    values: Mapping[str, Json] = field(default_factory=dict)
    lease: LeaseDraft | None = None
    unread: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    outside: Outside | None = None


class ModuleContext:
    """The LowerContext of a module: answers from its environments, servers and prompts.

    Leases are drafted once for each entry. `asked` records which of environment, server and
    prompt the lowering of the current stage asked for.
    """

    def __init__(
        self,
        module: Module,
        table: BackendTable,
        boundary: Boundary,
        references: References | None = None,
    ) -> None:
        self._module = module
        self._table = table
        self._leases: dict[tuple[str, str, Room], ResourceAttempt | None] = {}
        self._boundary = boundary
        self._tables: dict[tuple[str, str], tuple[tuple[Field, ...], dict[str, Setting]]] = {}
        self._references = References() if references is None else references
        self.asked: set[str] = set()

    def environment_lease(self, stage: StageView) -> LeaseDraft:
        attempt = self._used(stage, "environment")
        if attempt is None or attempt.lease is None:
            raise _MissingResourceError("environment")
        return attempt.lease

    def environment_facts(self, stage: StageView) -> Mapping[str, Json]:
        attempt = self._used(stage, "environment")
        if attempt is None or not isinstance(attempt.backend, EnvironmentBackend):
            raise _MissingResourceError("environment")
        backend = attempt.backend.under(attempt.values)
        return {
            "name": backend.id.removeprefix("env."),
            "reward_range": list(backend.reward_range),
            "success_at": backend.success_at,
            "max_turns": backend.max_turns,
            "splits": list(backend.splits),
            "capabilities": [*sorted(backend.capabilities)],
        }

    def server_lease(self, stage: StageView, checkpoint_role: str) -> LeaseDraft:
        attempt = self._used(stage, "server")
        if attempt is None or attempt.lease is None:
            raise _MissingResourceError("server")
        if attempt.lease.port == "none":  # a remote endpoint serves what it serves
            return attempt.lease
        return replace(attempt.lease, input=checkpoint_role)

    def prompt(self, stage: StageView) -> Prompt | None:
        self.asked.add("prompt")
        name = self._module.stages[stage.stage_id].uses.get("prompt")
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
            entries = (
                self._module.environments if section == "environment" else (self._module.servers)
            )
            entry = entries.get(name)
            self._leases[key] = (
                None
                if entry is None
                else attempt_resource(entry, self._table, self.content_of, room)
            )
        return self._leases[key]

    def fields_of(self, backend: StageBackend) -> tuple[tuple[Field, ...], dict[str, Setting]]:
        """The fields that a stage has on a backend, with what views have looked up in them."""
        name = (backend.kind, backend.id)
        if name not in self._tables:
            self._tables[name] = ((*_KINDS[backend.kind].fields, *backend.options), {})
        return self._tables[name]

    def _used(self, stage: StageView, section: str) -> ResourceAttempt | None:
        self.asked.add(section)
        declared = self._module.stages[stage.stage_id]
        name = declared.uses.get(section)
        if name is None:
            return None
        room = ONE_NODE
        if section == "server":
            room = room_of({name: value.json for name, value in declared.placement.items()})
        return self.resource(section, name, room)


class _MissingResourceError(Exception):
    """A stage lacks an environment or server; an earlier pass has said so already."""


def attempt_lowering(stage: Stage, backend: StageBackend, context: ModuleContext) -> Attempt:
    """Lower a stage on a backend. Never raises: a bug of the backend becomes `failure`."""
    kind = _KINDS[stage.kind]
    table, known = context.fields_of(backend)
    values = stage_values(stage)
    view = StageView(
        table=table,
        values=values,
        stage_id=stage.id,
        kind=stage.kind,
        inputs=stage.inputs,
        known=known,
    )
    context.asked.clear()
    failure = None
    drafts: tuple[JobDraft, ...] = ()
    try:
        drafts = backend.lower(view, context)
    except _MissingResourceError:
        return Attempt(backend=backend)
    except OutsideError as error:
        return Attempt(backend=backend, outside=_outside(error, values))
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    for draft in drafts:
        if draft.view is not view:
            view.absorb(draft.view)
    given = tuple(given_paths(table, values))
    own = [path for path in given if path not in stage.defaulted]
    defaulted = [path for path in given if path in stage.defaulted]
    return Attempt(
        backend=backend,
        drafts=drafts,
        unread=tuple(path for path in own if path not in view.read),
        idle=tuple(path for path in defaulted if path not in view.read),
        taken=tuple(path for path in defaulted if path in view.read),
        unused=tuple(
            use
            for use in kind.uses
            # A stage that names none takes the only entry of a section; that is no wish of it.
            if use in stage.uses and use in stage.spans and use not in context.asked
        ),
        untaken=tuple(
            role
            for role, producers in stage.inputs.items()
            if drafts and producers and not any(draft.inputs.get(role) for draft in drafts)
        ),
        refusals=tuple(dict.fromkeys(view.refusals)),
        reasons=view.reasons,
        failure=failure,
    )


def _outside(error: OutsideError, values: Mapping[str, Json]) -> Outside:
    named = (name for name, value in values.items() if value == error.written)
    return Outside(setting=next(named, None), place=without_forbidden(str(error.place)))


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
    said = _plain(entry.sharing)
    if said.get("scope") == "shared":
        own = said.get("placement")
        room = room_of(own if isinstance(own, dict) else {})
    elif said.get("scope") == "node" or MULTINODE not in backend.capabilities:
        room = (1, None, room[2])
    nodes, gpus, on_gpu = room
    view = OptionView(
        table=backend.fields, values=values, files=files, nodes=nodes, gpus=gpus, on_gpu=on_gpu
    )
    lease, failure, outside = None, None, None
    try:
        lease = backend.lease(view)
    except OutsideError as error:
        outside = _outside(error, values)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    refusals = list(view.refusals)
    if lease is not None:
        lease = _placed(entry, lease)
        refusals += _misplaced(entry, lease, MULTINODE in backend.capabilities)
    return ResourceAttempt(
        backend=backend,
        values=values,
        lease=lease,
        outside=outside,
        unread=tuple(p for p in given_paths(backend.fields, values) if p not in view.read),
        refusals=tuple(dict.fromkeys(refusals)),
        reasons=view.reasons,
        failure=failure,
    )


def _placed(entry: Resource, lease: LeaseDraft) -> LeaseDraft:
    """The lease with what the spec says of the server's place."""
    said = _plain(entry.sharing)
    replicas, placement = said.get("replicas"), said.get("placement")
    scope: Literal["job", "node", "shared"] = "job"
    if said.get("scope") in ("node", "shared"):
        scope = "node" if said["scope"] == "node" else "shared"
    return replace(
        lease,
        entry=entry.name,
        scope=scope,
        replicas=replicas if isinstance(replicas, int) else 1,
        placement=placement if isinstance(placement, dict) else {},
    )


def _misplaced(entry: Resource, lease: LeaseDraft, multinode: bool) -> Iterator[Refusal]:
    """What the spec says of a server's place and has no effect, or cannot be."""
    if lease.scope != "job" and lease.port == "none":
        yield Refusal(
            path="scope", reason="the endpoint is somebody else's: nothing is started that jobs "
            "could share", fix="remove `scope`",
        )  # fmt: skip
    several = lease.placement.get("nodes") not in (None, 1)
    if lease.scope == "shared" and several and not multinode:
        role = "a server" if lease.role == "policy" else "an environment"
        yield Refusal(
            path="placement.nodes", reason=f"{lease.backend} is {role} of one node",
            fix="leave nodes out" + ("" if lease.role != "policy" else
            "; serve.vllm spreads a model over nodes, and so may an endpoint that somebody starts "
            "(backend: openai)"),
        )  # fmt: skip
    for name in ("replicas", "placement"):
        if lease.scope != "shared" and name in entry.sharing:
            yield Refusal(
                path=name, reason=f"only a server of `scope: shared` has {name} of its own; "
                f"with `scope: {lease.scope}` it runs on what the jobs around it were given",
                fix=f"write `scope: shared`, or remove `{name}`",
            )  # fmt: skip


def stage_values(stage: Stage) -> dict[str, Json]:
    """What the spec sets: kind fields and backend options in one mapping."""
    return {**_plain(stage.fields), **_plain(stage.options)}


def given_paths(table: tuple[Field, ...], values: Mapping[str, Json]) -> Iterator[str]:
    """Dotted paths of the leaves that are set. An explicit null that is the default sets
    nothing; a name that the table lacks counts as set, so that it is never lost in silence."""
    declared = {field.name: field for field in table}
    for name, value in values.items():
        field = declared.get(name)
        if field is not None and value is None and field.default is None:
            continue
        if field is not None and field.fields and isinstance(value, dict):
            if not value and field.default is None:
                yield name  # a group that is off unless it is given
            for path in given_paths(field.fields, value):
                yield f"{name}.{path}"
        else:
            yield name


def _plain(values: Mapping[str, Value]) -> dict[str, Json]:
    return {name: value.json for name, value in values.items()}
