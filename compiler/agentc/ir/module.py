"""The IR: a Module of stages, environments, servers and prompts with names bound.

A stage is an occurrence of a body: rounds and cells of a sweep repeat bodies under other names.
Besides the classes: what a stage makes, where a setting was written, topological order, and what
every pass may rely on in a module.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from agentc.diagnostics.diagnostic import Origin, Span
from agentc.ir.claim import Claim
from agentc.ir.search import Search, StoppingRounds
from agentc.kinds import kind_named
from agentc.kinds.artifacts import ArtifactType
from agentc.kinds.field import Json
from agentc.kinds.interaction import OBSERVATION_PREFIX


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A JSON value with the place it was written; `span` is None for a default. Hashed by identity:
    the front end makes one of equal values from one place."""

    json: Json
    span: Span | None = None


Inputs: TypeAlias = Mapping[str, tuple[str, ...]]
"""By role, the ids of stages or jobs, in order."""
PLACEHOLDER = "<input "
"""How the placeholders of a body's inputs begin."""


ALGORITHM = "algorithm"
"""The setting by which a stage chooses among backends: they implement it."""


def algorithm_of(fields: Mapping[str, Value]) -> str | None:
    """The algorithm that the settings of a stage name."""
    value = fields.get(ALGORITHM)
    return value.json if value is not None and isinstance(value.json, str) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Body:
    """What a stage does, without its name and those of its inputs. The stages of several rounds
    and cells have one body; `Bodies` makes equal ones one object, so that they are compared and
    hashed by identity, and a pass works once for each.

    `backend` is a full backend id (`trl.sft`) once chosen, `auto` before. `fields` holds what the
    spec set (kind fields and, under their own names, the backend's `options:`); defaults are not
    filled in. `uses` maps "environment", "server", "prompt" to entries of the module's tables, and
    `named` are those that the spec names rather than the only entry of a section. `defaulted`
    names, by dotted path, what came from the spec's `defaults:`: it was written for every stage
    that has such a setting, so it is no error where the chosen backend has no use for it. `shape`
    says by role which of the stage's `parents` its inputs are.
    """

    kind: str
    backend: str
    fields: Mapping[str, Value] = field(default_factory=dict)
    options: Mapping[str, Value] = field(default_factory=dict)
    uses: Mapping[str, str] = field(default_factory=dict)
    placement: Mapping[str, Value] = field(default_factory=dict)
    defaulted: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    shape: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def slots(self) -> dict[str, tuple[str, ...]]:
        """The inputs with a placeholder for each parent (`Stage.fill`)."""
        return {role: tuple(map(_slot, places)) for role, places in self.shape.items()}


@dataclass(frozen=True, slots=True)
class Bodies:
    """Interns bodies: values are compared by identity, all else by content."""

    _known: dict[Hashable, Body] = field(default_factory=dict)
    _shaped: dict[Hashable, Body] = field(default_factory=dict)

    def shaped(self, body: Body, inputs: Inputs) -> Body:
        """An interned body with the shape of inputs."""
        shape = shape_of(inputs)
        key = (body, *shape.items())
        known = self._shaped.get(key)
        if known is None:
            known = self._shaped[key] = self.of(replace(body, shape=shape))
        return known

    def of(self, body: Body) -> Body:
        """The first body that was equal to this one."""
        tables = (body.fields, body.options, body.placement, body.uses, body.shape)
        content = (
            *(body.kind, body.backend, body.defaulted, body.named),
            *(tuple(table.items()) for table in tables),
        )
        return self._known.setdefault(content, body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One unrolled stage: an occurrence of a body.

    `id` is `sft`, or `eto.2.dpo` inside a repeat. `inputs` maps a role to stage ids. `spans` gives
    the place of each key by dotted path (`decode.temperature`, `options.x`, `placement.gpus`;
    `data.0` is the first item of an input). In a sweep, `base` is the id without the cell, and
    `cell` the swept params that the stage depends on.
    """

    id: str
    body: Body
    inputs: Inputs
    origin: Origin
    spans: Mapping[str, Span] = field(default_factory=dict)
    doc: str | None = None
    round: int | None = None
    base: str = ""
    cell: Mapping[str, Json] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.body.kind

    @property
    def backend(self) -> str:
        return self.body.backend

    @property
    def fields(self) -> Mapping[str, Value]:
        return self.body.fields

    @property
    def options(self) -> Mapping[str, Value]:
        return self.body.options

    @property
    def uses(self) -> Mapping[str, str]:
        return self.body.uses

    @property
    def placement(self) -> Mapping[str, Value]:
        return self.body.placement

    @property
    def defaulted(self) -> frozenset[str]:
        return self.body.defaulted

    def parents(self) -> tuple[str, ...]:
        """The stages among its inputs, each once."""
        return tuple(dict.fromkeys(name for names in self.inputs.values() for name in names))

    def fill(self, inputs: Inputs) -> dict[str, tuple[str, ...]]:
        """Inputs made of the body's slots, with the ids of this stage's parents in their place."""
        ids = {_slot(place): name for place, name in enumerate(self.parents())}
        return {
            role: tuple(ids.get(name, name) for name in names) for role, names in inputs.items()
        }

    def with_inputs(self, inputs: Inputs) -> Stage:
        """The stage with other inputs, and a body of its own for them."""
        return replace(self, inputs=inputs, body=replace(self.body, shape=shape_of(inputs)))


def shape_of(inputs: Inputs) -> dict[str, tuple[int, ...]]:
    """By role, the positions of inputs among the stages that they name, each of which counts
    once."""
    places: dict[str, int] = {}
    return {
        role: tuple(places.setdefault(name, len(places)) for name in names)
        for role, names in inputs.items()
    }


@lru_cache(maxsize=1024)
def _slot(place: int) -> str:
    """No stage has such an id."""
    return f"{PLACEHOLDER}{place}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """An environment or a server as declared: a backend with settings, leased by jobs. `sharing`
    holds what the spec says of its place: scope, replicas, placement. `simulators` holds which
    model server an environment asks in a role: `{"server": entry, "model": reference or absent}`;
    each stage that uses it has the model among its inputs, under that role."""

    name: str
    backend: str
    fields: Mapping[str, Value]
    options: Mapping[str, Value]
    origin: Origin
    spans: Mapping[str, Span] = field(default_factory=dict)
    sharing: Mapping[str, Value] = field(default_factory=dict)
    simulators: Mapping[str, Value] = field(default_factory=dict)

    def simulator_server(self, role: str) -> str | None:
        """The entry of `servers` that it asks in a role."""
        found = self.simulators.get(role)
        name = found.json.get("server") if found and isinstance(found.json, dict) else None
        return name if isinstance(name, str) else None

    def simulator_model(self, role: str) -> str | None:
        """The model or stage that is served to it in a role, as the spec refers to it."""
        found = self.simulators.get(role)
        name = found.json.get("model") if found and isinstance(found.json, dict) else None
        return name if isinstance(name, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt object, shared by every stage that names it, so that training and evaluation
    cannot drift apart. `examples` are in-context conversations. An instruction of `role: system`
    stands in `system`, and `instruction` is empty."""

    name: str
    instruction: str
    acknowledgement: str | None
    examples: tuple[tuple[tuple[str, str], ...], ...]
    reply_format: str
    origin: Origin
    system: str | None = None
    observation_prefix: str = OBSERVATION_PREFIX
    output_marker: str | None = None
    memory: str = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a run may cost; None: whatever. `quantile` of the estimate is compared, for
    GPUs of type `gpu`. `spans` are the places of the keys."""

    wall_hours: float | None = None
    gpu_hours: float | None = None
    tokens: float | None = None
    disk_gb: float | None = None
    quantile: str = "p50"
    gpu: str = "a100"
    spans: Mapping[str, Span] = field(default_factory=dict)

    def limits(self) -> dict[str, float]:
        """The amounts that are bounded, by key."""
        amounts = {
            "wall_hours": self.wall_hours,
            "gpu_hours": self.gpu_hours,
            "tokens": self.tokens,
            "disk_gb": self.disk_gb,
        }
        return {name: amount for name, amount in amounts.items() if amount is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking:
    """A tracker that runs are written to, with the settings that were given. It enters neither key
    nor plan. `span` is where the spec names it."""

    tracker: str
    settings: Mapping[str, Json] = field(default_factory=dict)
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class SpecLock:
    """A lock that the spec brings for a software stack: its file as written, and the places
    of the environment's name and of the file."""

    file: str
    name_span: Span
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A whole experiment. `matrix` holds the values of each swept param, `scale` the scale that
    was chosen, `templates` the SHA-256 of each template that was used. `whole`: no stage is left
    out for an error in it."""

    name: str
    stages: Mapping[str, Stage]
    environments: Mapping[str, Resource]
    servers: Mapping[str, Resource]
    prompts: Mapping[str, Prompt]
    software: Mapping[str, SpecLock] = field(default_factory=dict)
    params: Mapping[str, Json] = field(default_factory=dict)
    chosen: Mapping[str, Json] = field(default_factory=dict)
    """Params that were given with `-p` a value which is not their default."""
    matrix: Mapping[str, list[Json]] = field(default_factory=dict)
    scale: str | None = None
    """The scale chosen with `--scale`; claims are judged at the paper's own only."""
    templates: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None
    paper: Mapping[str, Json] = field(default_factory=dict)
    discrepancies: tuple[Mapping[str, Json], ...] = ()
    claims: tuple[Claim, ...] = ()
    budget: Budget | None = None
    track: tuple[Tracking, ...] = ()
    search: Search | None = None
    stopping: tuple[StoppingRounds, ...] = ()
    origin: Origin | None = None
    whole: bool = True


# What a stage makes: the product of its kind, or, where the stage says that itself, what it says.


def product_of(stage: Stage) -> ArtifactType | None:
    """The type of its artifact; None of a kind that does not exist."""
    kind = kind_named(stage.kind)
    if kind is None:
        return None
    value = stage.fields.get(kind.product_setting)
    return kind.product(None if value is None else value.json)


def stage_span(stage: Stage | Resource, path: str) -> Span:
    """The span of a dotted path, of the nearest mapping around it, or of the whole entry."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        span = stage.spans.get(prefix) or stage.spans.get(f"options.{prefix}")
        if span is not None:
            return span
    for table in (stage.fields, stage.options):
        value = table.get(parts[0])
        if value is not None and value.span is not None:
            return value.span
    return stage.origin.span


def ordered(module: Module) -> list[Stage]:
    """Stages in topological order, as declared where that is free."""
    result: dict[str, Stage] = {}
    opened: set[str] = set()
    for start in module.stages:
        pending = [(start, False)]
        while pending:
            name, parents_done = pending.pop()
            stage = module.stages.get(name)
            if stage is None or name in result:
                continue
            if parents_done:
                result[name] = stage
                continue
            if name in opened:
                raise AssertionError(f"a circle of stages through {name}")
            opened.add(name)
            pending.append((name, True))
            parents = [parent for names in stage.inputs.values() for parent in names]
            pending += [(parent, False) for parent in reversed(parents) if parent not in result]
    return list(result.values())


# Verifier of the IR level: what every pass may rely on in a module.


def verify_module(module: Module) -> list[str]:
    """The invariants that do not hold, as sentences; empty for a sound module."""
    faults: list[str] = []
    for name, stage in module.stages.items():
        if stage.id != name:
            faults.append(f"stage {stage.id} is filed under {name}")
        if stage.body.shape != shape_of(stage.inputs):
            faults.append(f"the body of {name} does not have the shape of its inputs")
        kind = kind_named(stage.kind)
        if kind is None:
            faults.append(f"{name} is of the unknown kind {stage.kind}")
            continue
        faults += [
            f"{name}.{role} names {parent}, which is no stage"
            for role, parents in stage.inputs.items()
            for parent in parents
            if parent not in module.stages
        ]
        asking = module.environments.get(stage.uses.get("environment", ""))
        roles = {role.name for role in kind.roles_of(stage.inputs)}
        roles |= {*(asking.simulators if asking else ())}
        faults += [
            f"{name} has the role {role}, which {stage.kind} lacks"
            for role in stage.inputs
            if role not in roles and not kind.gathers
        ]
        known = {field.name for field in kind.fields}
        faults += [
            f"{name} sets {field}, which {stage.kind} lacks"
            for field in stage.fields
            if field not in known
        ]
        for section, table in (
            ("environment", module.environments),
            ("server", module.servers),
            ("prompt", module.prompts),
        ):
            used = stage.uses.get(section)
            if used is not None and used not in table:
                faults.append(f"{name} uses the {section} {used}, which is not declared")
    return faults
