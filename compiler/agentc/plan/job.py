"""Plan, Job, Lease, EnvLock, Resources, Session, Server: what lowering yields and emission writes.

Inputs are job ids on this level; `plan.json` names objects (`<kind>/<key>`) instead, see
`agentc.plan.render`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from agentc.kinds.field import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvLock:
    """A software environment by name, with the text of its lock."""

    name: str
    lock: str

    @property
    def sha256(self) -> str:
        """Digest of the lock's text: the environment's identity."""
        return hashlib.sha256(self.lock.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a job asks of the machine. `mem_mb` and `minutes` are None when nothing is asked."""

    cpus: int = 1
    gpus: int = 0
    mem_mb: int | None = None
    minutes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a job comes from: file name, line and column, and the steps that brought it there."""

    file: str
    line: int
    column: int
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A value that the spec's `placement:` gives, and where: file name and line; for a server the
    entry of the spec, and no line."""

    value: Json
    file: str
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A server that a job needs while it runs. `environment` is None for a remote endpoint.

    Fields are those of `agentc.backend_api.LeaseDraft`; `input` is the role whose checkpoint is
    served. `server` is the id of the plan's shared server that is meant, "" for one of the job's
    own; `entry`, `scope`, `replicas` and `placement` are what the spec says of it. `ranks` is the
    record of `agentc.backend_api.Ranks` for one that spreads over nodes, else empty.
    """

    role: str
    backend: str
    version: int
    environment: str | None
    program: tuple[str, ...]
    identity: Mapping[str, Json]
    port: str
    probe: str
    identity_check: str
    expect: Mapping[str, Json]
    url: str | None
    input: str | None
    variables: Mapping[str, str]
    secrets: Mapping[str, str]
    ready_timeout_s: float
    served_name: str
    client: Mapping[str, Json] = field(default_factory=dict)
    entry: str = ""
    scope: str = "job"
    replicas: int = 1
    placement: Mapping[str, Json] = field(default_factory=dict)
    server: str = ""
    ranks: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One unit of work with one artifact. `key` is empty until `assign_keys` has run.

    `identity` is `{"settings": ..., "facts": ...}`: semantic settings that differ from their
    defaults, and what the backend added (prompt, environment). `inputs` maps a role to job ids.
    `asked` is what the spec's `placement:` says of this job, by name; a profile may say otherwise
    (docs/design/placement.md).
    """

    id: str
    stage: str
    kind: str
    backend: str
    version: int
    produces: str
    environment: str
    program: tuple[str, ...]
    inputs: Mapping[str, tuple[str, ...]]
    config: Mapping[str, Json]
    identity: Mapping[str, Json]
    origin: Place
    placement: Mapping[str, Json] = field(default_factory=dict)
    asked: Mapping[str, Asked] = field(default_factory=dict)
    leases: tuple[Lease, ...] = ()
    contract: Mapping[str, Json] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = Resources()
    processes: int = 1
    resume: bool = False
    round: int | None = None
    key: str = ""

    @property
    def object(self) -> str:
        """The store's name of what this job makes."""
        return f"{self.kind}/{self.key}"

    def parents(self) -> tuple[str, ...]:
        """Ids of the jobs whose artifacts this one reads, each once, in role order."""
        return tuple(dict.fromkeys(i for ids in self.inputs.values() for i in ids))

    def lease(self, role: str) -> Lease | None:
        """The lease of that role, if any."""
        return next((lease for lease in self.leases if lease.role == role), None)


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
    asked: Mapping[str, Asked]
    clients: tuple[str, ...]
    network: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole experiment, ready to be written down. `targets` are job ids."""

    name: str
    spec_file: str
    spec_sha256: str
    params: Mapping[str, Json]
    environments: Mapping[str, EnvLock]
    jobs: tuple[Job, ...]
    sessions: tuple[Session, ...] = ()
    servers: tuple[Server, ...] = ()
    targets: tuple[str, ...] = ()
    experiment: Mapping[str, Json] = field(default_factory=dict)
    chosen: Mapping[str, Json] = field(default_factory=dict)
    """Params that were given a value which is not their default: they tell runs apart."""

    def by_id(self) -> dict[str, Job]:
        """Jobs by id."""
        return {job.id: job for job in self.jobs}
