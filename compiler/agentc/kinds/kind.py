"""Kind: a stage kind with what it takes, makes and does. `table.py` lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from agentc.kinds.artifacts import ArtifactType
from agentc.kinds.field import Field, Role

MODEL_KIND = "model"
"""The kind of what stands under `models:`, which needs no `kind:`."""
VERDICTS_KIND = "verdicts"
REPORT_KIND = "report"
"""The kinds of the stages that are added to a spec: the verdicts on its claims, and a report."""

Forecast: TypeAlias = Literal[
    "weights",
    "demonstrations",
    "texts",
    "conversations",
    "episodes",
    "trees",
    "revisions",
    "mixture",
    "pairs",
    "candidates",
    "scores",
    "training",
    "reinforcement",
    "experience",
    "rows",
    "unknown",
]
"""What the cost model counts of a job: `rows` goes by those of its inputs and suits whatever only
reads them, and `unknown` says that nobody knows how long that takes; each of the others has a
formula of its own (`agentc.cost.workload`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Facts of a manifest by which a kind counts: `made`, the rows of its product; `replies`, what
    it asked of a model; `tokens` stands before `prompt_tokens` and `completion_tokens`."""

    made: str = "episodes"
    replies: str = "turns"
    tokens: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A stage kind: `roles` are its inputs (edges), `fields` its settings, `produces` its product.

    `uses` names what it needs besides artifacts: "environment", "server", "prompt" (each is a key
    of the stage that refers to an entry of the section of that name). `default_backend` is what
    `backend: auto` prefers when several backends can do the work. The inputs of a kind that
    `gathers` are filled in by the compiler. With `named` a stage gives its inputs names of its own,
    under the key that is the role's name; each is such a role. With `products` the value of the
    field `product_setting` says what a stage makes; `produces` is what it makes under other values,
    and where the value is not known.

    `example` are the settings of a stage that has the kind's name, as YAML; it names other kinds'
    examples (`agentc explain`, `agentc.reference.examples`). Only what needs no stage has none.

    What the rest says is asked by rules, the cost model and reports, instead of a kind's name:
    `trains` has a model trained on rows, with the fields that trainers share; `acts` has a policy
    act in an environment; the product of a kind that `collects` is of episodes on tasks of a
    split; one that is `online` has a policy act and learns from what comes of it, in one job;
    `reworks` names the inputs whose rows become training data; `longest_reply` is the
    setting that bounds replies of the model it asks. `without` says of backends that people look
    for why there is none, by the name that they would write.
    """

    name: str
    doc: str
    produces: ArtifactType
    roles: tuple[Role, ...] = ()
    fields: tuple[Field, ...] = ()
    uses: tuple[str, ...] = ()
    default_backend: str | None = None
    gathers: bool = False
    trains: bool = False
    acts: bool = False
    collects: bool = False
    online: bool = False
    reworks: tuple[str, ...] = ()
    longest_reply: str | None = None
    without: Mapping[str, str] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    forecast: Forecast = "rows"
    named: Role | None = None
    example: str = ""
    products: Mapping[str, ArtifactType] = field(default_factory=dict)
    product_setting: str = "output"

    def has(self, name: str) -> bool:
        """Whether it has a field of that name."""
        return any(own.name == name for own in self.fields)

    def role(self, name: str) -> Role | None:
        """Its input of that name, or None."""
        return next((own for own in self.roles if own.name == name), None)

    def roles_of(self, names: Iterable[str]) -> tuple[Role, ...]:
        """Its inputs, and those that a stage with inputs of these names gives names to."""
        if self.named is None:
            return self.roles
        known = {own.name for own in self.roles}
        return (*self.roles, *(replace(self.named, name=n) for n in names if n not in known))

    def product(self, value: object) -> ArtifactType:
        """What a stage makes that has this value of `product_setting`, or none."""
        return self.products.get(str(value), self.produces)

    def of_stage(self, names: Iterable[str], value: object) -> Kind:
        """The kind as one stage has it: with the inputs that it names, and what it makes."""
        if self.named is None and not self.products:
            return self
        return replace(self, roles=self.roles_of(names), produces=self.product(value))

    def reads(self, artifact: ArtifactType) -> bool:
        """Whether an input accepts artifacts of that type."""
        return any(artifact in own.accepts for own in self.roles)
