"""The IR: a Module of stages, environments, servers and prompts with names bound.

Produced from syntax by `agentc.passes`; read by lowering. Rounds are unrolled, expressions are
evaluated, every value is plain JSON with the span it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentc.diagnostics.span import Origin, Span
from agentc.ir.claim import Claim
from agentc.ir.search import Search
from agentc.ir.stopping import StoppingRounds
from agentc.kinds.field import Json
from agentc.kinds.interaction import OBSERVATION_PREFIX


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value with the place it was written; `span` is None for a default."""

    json: Json
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One unrolled stage.

    `id` is `sft`, or `eto.2.dpo` inside a repeat. `backend` is a full backend id (`trl.sft`) once
    chosen, `auto` before. `inputs` maps a role to stage ids, in order. `uses` maps
    "environment", "server", "prompt" to entries of the module's tables. `fields` holds what the
    spec set (kind fields and, under their own names, the backend's `options:`); defaults are not
    filled in. `spans` gives the place of each key by dotted path (`decode.temperature`,
    `options.x`, `placement.gpus`; `data.0` is the first item of an input). `defaulted` names, by
    dotted path, what came from the spec's `defaults:`: it was written for every stage that has
    such a setting, so it is no error where the chosen backend has no use for it. In a sweep,
    `base` is the id without the cell, and `cell` the swept params that the stage depends on.
    """

    id: str
    kind: str
    backend: str
    fields: Mapping[str, Value]
    options: Mapping[str, Value]
    inputs: Mapping[str, tuple[str, ...]]
    uses: Mapping[str, str]
    origin: Origin
    spans: Mapping[str, Span] = field(default_factory=dict)
    doc: str | None = None
    placement: Mapping[str, Value] = field(default_factory=dict)
    round: int | None = None
    defaulted: frozenset[str] = frozenset()
    base: str = ""
    cell: Mapping[str, Json] = field(default_factory=dict)


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

    def asked_server(self, role: str) -> str | None:
        """The entry of `servers` that it asks in a role."""
        found = self.simulators.get(role)
        name = found.json.get("server") if found and isinstance(found.json, dict) else None
        return name if isinstance(name, str) else None

    def asked_model(self, role: str) -> str | None:
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
class OwnLock:
    """A lock that the spec brings for a software environment: its file as written, and the places
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
    software: Mapping[str, OwnLock] = field(default_factory=dict)
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
