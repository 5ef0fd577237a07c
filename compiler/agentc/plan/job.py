"""What lowering yields and emission writes: Plan, Job, Lease, SoftwareLock, Resources, Session,
Server.

Inputs are job ids on this level; `plan.json` names objects (`<kind>/<key>`) instead, see
`agentc.plan.render`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentc.backend_api import JobDraft, LeaseDraft
from agentc.ir.module import Inputs
from agentc.kinds.field import Json
from agentc.runtime.software.lock_text import lock_digest

COMPUTE_CPUS = 2
"""Default cpus of a job that trains or serves a model. A fixed number, since the number of threads
changes the last digits of what is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareLock:
    """A software stack by name, with the text of its lock."""

    name: str
    lock: str

    @property
    def sha256(self) -> str:
        """Digest of the lock: the stack's identity."""
        return lock_digest(self.lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a job asks of the machine. `mem_mb` and `minutes` are None when nothing is asked."""

    cpus: int = 1
    gpus: int = 0
    mem_mb: int | None = None
    minutes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlace:
    """Where a job comes from: file name, line and column, and the steps that brought it there."""

    file: str
    line: int
    column: int
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """A value that the spec's `placement:` gives, and where: file name and line; for a server the
    entry of the spec, and no line."""

    value: Json
    file: str
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lease:
    """A server that a job needs while it runs: what its backend drafted, and where it is.

    `software` names the software stack of the plan that the program runs in, None for a
    remote endpoint. `server` is the id of the plan's shared server that is meant, "" for one of
    the job's own.
    """

    draft: LeaseDraft
    software: str | None
    server: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobMemory:
    """What a job, or a shared server, is expected to need (`agentc.memory`). `device` is what each
    GPU holds at most, or each process where there are none, in bytes, and `parts` are its summands
    by name; `mem_mb` is what to ask of each node in MiB, and `staging` are the bytes on disk that
    lie beside the result while the job works. `card` is what the spec says of the GPU, and `room`
    the bytes of it that may be filled, nothing where it says nothing. `cores` are those of a node
    that a job on GPUs keeps busy, its program and its other servers included; 0 without GPUs."""

    gpus: int
    device: int
    parts: Mapping[str, int]
    mem_mb: int
    staging: int = 0
    card: str = ""
    room: int = 0
    cores: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSize:
    """The size of the model that a job takes from a folder: weights, bytes of their files, and
    blocks and width by its config.json, 0 where that does not say."""

    parameters: int
    file_bytes: int
    layers: int = 0
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobBody:
    """What the jobs of stages with one body have in common, one object for all of them.

    The draft's `placement` holds what the spec says of it as well; its `inputs` are not those of a
    job. `identity` is `{"settings": ..., "facts": ...}`: semantic settings that differ from their
    defaults, and what the backend added (prompt, environment). `asked` is what the spec's
    `placement:` says of these jobs, by name; a profile may say otherwise
    (docs/design/placement.md).
    """

    draft: JobDraft
    software: str
    identity: Mapping[str, Json]
    asked: Mapping[str, ResourceRequest] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One unit of work with one artifact: what its backend drafted, and what the compiler adds.
    `key` is empty until `assign_keys` has run. `inputs` are job ids, siblings included.
    """

    body: JobBody
    id: str
    stage: str
    inputs: Inputs
    origin: SourcePlace
    leases: tuple[Lease, ...] = ()
    resources: Resources = Resources()
    memory: JobMemory | None = None
    model_size: ModelSize | None = None
    round: int | None = None
    key: str = ""

    @property
    def draft(self) -> JobDraft:
        return self.body.draft

    @property
    def software(self) -> str:
        return self.body.software

    @property
    def identity(self) -> Mapping[str, Json]:
        return self.body.identity

    @property
    def asked(self) -> Mapping[str, ResourceRequest]:
        return self.body.asked

    @property
    def object(self) -> str:
        """The store's name of what this job makes."""
        return f"{self.draft.kind}/{self.key}"

    def parents(self) -> tuple[str, ...]:
        """Ids of the jobs whose artifacts this one reads, each once, in role order."""
        return tuple(dict.fromkeys(i for ids in self.inputs.values() for i in ids))

    def lease(self, role: str) -> Lease | None:
        """The lease of that role, if any."""
        return next((lease for lease in self.leases if lease.draft.role == role), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Jobs that run under one start of the server they all need."""

    id: str
    key: str
    members: tuple[str, ...]

    @property
    def object(self) -> str:
        """The store's name of the session."""
        return f"session/{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that several jobs share: a job of its own (scope "shared"), or one of each node
    (scope "node"). `model` is the job whose checkpoint it serves, `clients` are those that use it.
    """

    id: str
    key: str
    scope: str
    replicas: int
    lease: Lease
    model: str | None
    resources: Resources
    placement: Mapping[str, Json]
    asked: Mapping[str, ResourceRequest]
    clients: tuple[str, ...]
    network: bool = False
    memory: JobMemory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole experiment, ready to be written down. `targets` are job ids."""

    name: str
    spec_file: str
    spec_sha256: str
    params: Mapping[str, Json]
    software: Mapping[str, SoftwareLock]
    jobs: tuple[Job, ...]
    sessions: tuple[Session, ...] = ()
    servers: tuple[Server, ...] = ()
    targets: tuple[str, ...] = ()
    experiment: Mapping[str, Json] = field(default_factory=dict)
    chosen: Mapping[str, Json] = field(default_factory=dict)
    """Params that were given a value which is not their default: they tell runs apart."""
    code: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of backends that the spec brings along: by module, the text of each file."""

    def by_id(self) -> dict[str, Job]:
        """Jobs by id."""
        return {job.id: job for job in self.jobs}
