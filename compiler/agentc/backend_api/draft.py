"""Drafts that lowering returns: jobs and leases before keys, fusion and placement.

Placeholders in `argv` are filled at run time by `agentc.runtime.job`: `{python}` is implied as the
first word; `{job}` is the path of job.json; `{port}`, `{host}`, `{ready_file}`, `{model}` (the
served checkpoint's directory), `{served_name}` and `{settings}` exist in lease commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from agentc.backend_api.declare import Software
from agentc.backend_api.view import StageView
from agentc.ir.module import Prompt
from agentc.kinds.field import Json
from agentc.lease_roles import LeaseRole


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """A server whose program runs once on each of several nodes, as one server.

    `each` are words that every rank's program gets after its own, `others` those besides for all
    but the first, which alone listens; `variables` are environment variables of each. Placeholders:
    `{nodes}`, `{rank}`, `{first_node}` (the first node's address), `{meeting_port}` (free there)
    and `{node_address}` (the rank's own). `sizes` says by name how the model is shared, for people.
    """

    nodes: int
    each: tuple[str, ...]
    others: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeaseDraft:
    """A server that a job needs while it runs.

    `role` is what it is to the job (`agentc.lease_roles`). `backend`/`version`/`identity`
    (semantic settings) enter the key of every job that uses it. `program` is argv after the
    interpreter, e.g. `("-m", "acme.job_serve", "--port", "0", "--ready-file", "{ready_file}")`.
    `settings` are what an environment is told: JSON values, in the file `{settings}`.
    `port`: "chosen" when the program binds port 0 itself and writes {host, port} to the ready
    file; "held" when the runtime reserves a port and passes `{port}`; "none" for a remote
    endpoint that is not started (then `url` is given). `probe` is the path whose 200 means alive.
    `identity_check` names how the runtime asserts that the right thing is served: "model" (the
    served model's root directory is the artifact meant, and one real completion works),
    "features" (the same, and one picture gets features), "environment" (GET /meta equals `expect`),
    or "none".
    `inside` says of an environment that a job's program may open it in its own process, where the
    software is its own: the module of `program` has `opener(settings)`, which gives what opens the
    environment (without `settings` it is called with the words after the module), and calls of that
    environment are quick (it is not `blocking`). For stage backends whose programs do so `port` is
    "inside" (`LowerContext.environment_leases`): then nothing is started.
    `input` names the job input (role) whose directory is `{model}`. A server backend leaves it and
    `role` to the compiler, which knows what the server is leased for. `secrets` maps environment
    variables to names of secrets. `client` holds settings for whoever calls the server (rate
    limits of a remote endpoint); like all placement it never enters a key. So does `ranks`, which
    a backend with the capability `multinode` gives where its view has several `nodes`.

    `needs` are roles of other leases that this server asks by itself: they are ready before it is
    started, and its program finds them in the file that AGENTC_LEASES names (`{role: lease}`, each
    as in a job's file). Such a server is started by each job for itself.

    `silence_s` is how long the running server may leave requests of `probe` without an answer
    before it counts as hung, what it waits for a core of a busy machine aside; 0: nobody asks it.

    `causes` are regular expressions that find the reason in the log of a server that did not start
    or that died: the first line that matches the first of them that any line matches is shown, its
    group `cause` where it has one. Lines that match one of `noise` are left out of the last lines.

    `devices` is how many of its job's GPUs the program takes, where the job has any on one node:
    no other server of the job gets them, and its program what is left. Where no server says so,
    the model's has all.

    `cores` is how many cores the program binds threads to on a CPU. AGENTC_CORES names them to it
    (`0,1`), others than those of every other server of the machine; where too few are free it is
    not set, and the program leaves its threads to the kernel.

    `entry`, `scope`, `replicas` and `placement` are what the spec's entry says of the server's
    place, and `copies` what that means within a job: a number, or "auto", as many as the job's GPUs
    allow; the compiler writes them, a backend leaves them alone.
    """

    backend: str
    version: int
    software: Software | None
    program: tuple[str, ...]
    identity: Mapping[str, Json]
    role: LeaseRole = "policy"
    port: Literal["chosen", "held", "none", "inside"] = "chosen"
    probe: str = "/health"
    identity_check: Literal["model", "features", "environment", "none"] = "none"
    expect: Mapping[str, Json] = field(default_factory=dict)
    url: str | None = None
    input: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    ready_timeout_s: float = 300.0
    silence_s: float = 0.0
    causes: tuple[str, ...] = ()
    noise: tuple[str, ...] = ()
    served_name: str = "policy"
    capabilities: frozenset[str] = frozenset()
    client: Mapping[str, Json] = field(default_factory=dict)
    settings: Mapping[str, Json] = field(default_factory=dict)
    inside: bool = False
    ranks: Ranks | None = None
    needs: tuple[LeaseRole, ...] = ()
    devices: int = 0
    cores: int = 0
    copies: int | Literal["auto"] | None = None
    entry: str = ""
    scope: Literal["job", "node", "shared"] = "job"
    replicas: int = 1
    placement: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobDraft:
    """One job of a stage.

    `name` is "" for the job that yields the stage's artifact, else a suffix (`rollout`) for an
    earlier job of the same stage. `kind` is the rule that runs it. `view` is the scoped view that
    this job read from: its `identity()` enters the key. `config` is what the job program receives
    (effective values, rendered configuration of the real library): it never enters the key by
    itself, so `config` must be a function of what was read, the version, and the inputs.
    `placement` is given to the program too, and never enters the key.
    `inputs` maps a role to what the view has under some role of the stage or, with a leading ":",
    to a sibling job (`:rollout`).
    `extra_identity` holds semantic facts that are not settings of this stage (the prompt text,
    the environment's declaration). `resume` says that the program continues from its work folder.
    `secrets` maps environment variables of the program to names of secrets (`view.secret`); only
    the names are ever written.
    `local` says that the job needs no node of its own: it takes seconds of one core and no GPU, or
    does nothing but download. Under a cluster's profile it runs on the submit host, as Snakemake's
    local rules do, unless spec or profile say otherwise. It never enters the key.
    `expected` is what lowering has counted for estimates, such as the rows of a local file
    (`{"rows", "characters": of a row}`). It enters no key, and the program does not get it.
    """

    kind: str
    backend: str
    version: int
    software: Software
    program: tuple[str, ...]
    view: StageView
    config: Mapping[str, Json]
    inputs: Mapping[str, tuple[str, ...]]
    produces: str
    name: str = ""
    placement: Mapping[str, Json] = field(default_factory=dict)
    leases: tuple[LeaseDraft, ...] = ()
    extra_identity: Mapping[str, Json] = field(default_factory=dict)
    contract: Mapping[str, Json] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    resume: bool = False
    processes: int = 1
    local: bool = False
    expected: Mapping[str, Json] = field(default_factory=dict)


class LowerContext(Protocol):
    """What lowering may ask the compiler for."""

    def environment_lease(self, stage: StageView) -> LeaseDraft:
        """The lease of the environment that the stage uses."""
        ...

    def environment_leases(
        self, stage: StageView, inside_of: tuple[Software, ...] = ()
    ) -> tuple[LeaseDraft, ...]:
        """The same with those of the servers that it `needs`, in that order. A program that runs in
        one of `inside_of` gets the environment to open by itself (port "inside") where it can: its
        calls are quick, the software is one of these, and no other job is to share a server."""
        ...

    def environment_facts(self, stage: StageView) -> Mapping[str, Json]:
        """Declared facts: {name, reward_range, success_at, max_turns, splits, capabilities}, and
        reward_name where there is one."""
        ...

    def server_lease(
        self, stage: StageView, checkpoint_role: str, role: LeaseRole = "policy"
    ) -> LeaseDraft:
        """The lease of the server that the stage uses, serving the input `checkpoint_role`, as that
        `role` of the job's leases, of which no two have the same."""
        ...

    def input_names(self, stage: StageView, role: str) -> tuple[str, ...]:
        """The ids of the stages that are the inputs of a role, for a backend that writes them down.
        The view has placeholders, since stages of all rounds and cells which differ in names only
        are lowered once; with names, each is lowered by itself."""
        ...

    def prompt(self, stage: StageView) -> Prompt | None:
        """The prompt object that the stage names."""
        ...

    def experiment(self) -> Mapping[str, Json]:
        """What a report says of the whole: {name, description, paper, discrepancies, rounds}, and
        the scale where one is chosen."""
        ...

    def claims(self) -> tuple[Mapping[str, Json], ...]:
        """The spec's claims, for the stage that judges them (`agentc.ir.claim.Claim.record`)."""
        ...

    def digest_of(self, path: str) -> str | None:
        """SHA-256 over the content of a file or directory outside the store (relative paths start
        at the spec), for `extra_identity`; None when there is none."""
        ...

    def local_file(self, path: str) -> Path | None:
        """Where a file outside the store is, as `digest_of` takes it, for a backend that reads a
        part of it; None when there is none. What is made of it is a function of its digest."""
        ...

    def model_folder(self, path: str) -> tuple[str, str | None]:
        """The directory or file of a model as its job reads it (a path that leads nowhere from the
        spec may be below a model folder of the user's configuration), and its `digest_of`."""
        ...

    def is_directory(self, path: str) -> bool:
        """Whether a path outside the store, as `digest_of` takes it, is a directory."""
        ...

    def pinned_revision(self, repo: str, revision: str) -> str | None:
        """The commit that a revision of a hub's repository (of a data set: `datasets/owner/name`)
        means: itself when it is a commit, else what the spec's lock pins. A branch or tag without a
        pin is None, or itself where the plan is only looked at."""
        ...
