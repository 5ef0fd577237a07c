"""What the model of a stage needs, as a rule and as the plan want to know it: the question that is
put to its backend, and the arithmetic of the answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

from agentc.backend_api import ServerBackend, StageBackend
from agentc.backend_api.memory import Architecture, MemoryQuestion
from agentc.ir.module import Stage
from agentc.kinds.field import Json
from agentc.kinds.table import TRAINERS
from agentc.memory import (
    MemoryNeed,
    card_bytes,
    serving_need,
    training_need,
)
from agentc.passes.checks.model_servers import (
    POLICY,
    LeasedModelServer,
    beside_policy,
    leased_servers,
)
from agentc.passes.checks.model_shape import model_shape
from agentc.passes.checks.subject import PlacedSettings, Settings, StageContext

CARD = "placement.gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHolder:
    """Who holds the weights of a stage's model: the trainer itself (`settings` and `place` are the
    stage's), or a server that it leases. `place` says which machine it gets. `compared`: with
    another model, its `reference`, whose shape may not be known."""

    backend: StageBackend | ServerBackend
    settings: Settings
    place: Settings
    model: Architecture
    reference: Architecture | None = None
    compared: bool = False
    leased: LeasedModelServer | None = None
    changes: Mapping[str, Json] = field(default_factory=dict)

    @property
    def gpus(self) -> int:
        """Those that it gets, on all nodes; 0 where nobody says any."""
        found = self.get("placement.gpus")
        return found if isinstance(found, int) and not isinstance(found, bool) else 0

    @property
    def card(self) -> float | None:
        """Bytes of one, where the spec says."""
        said = self.get(CARD)
        return card_bytes(said) if self.gpus and said is not None else None

    @property
    def ground(self) -> Hashable:
        """What the need rests on: equal for holders that need the same."""
        entry = self.place.entry
        placed = tuple(entry.placement.items()) if isinstance(entry, Stage) else self.place
        settings = (self.backend.id, self.settings.owner, placed)
        compared = (self.compared, self.reference)
        return (*settings, self.model, *compared, tuple(self.changes.items()))

    @property
    def effective(self) -> PlacedSettings:
        """The settings in effect, as the changes have them."""
        return PlacedSettings(self.settings, self.place, self.changes)

    def get(self, path: str) -> Json:
        """One of them."""
        return self.effective.get(path)

    def need(self) -> MemoryNeed | None:
        """What it needs; None where its backend does not say."""
        nodes = self.get("placement.nodes")
        several = nodes if isinstance(nodes, int) and nodes > 1 else 1
        question = MemoryQuestion(
            get=self.effective.get,
            model=self.model,
            gpus=self.gpus,
            nodes=several,
            card=self.card,
            reference=self.compared,
        )
        try:
            return self._answer(question)
        except Exception:
            # It is written for settings that hold together, somebody else's perhaps; those of a
            # spec may have errors of their own, which others report.
            return None

    def _answer(self, question: MemoryQuestion) -> MemoryNeed | None:
        gpus = question.gpus
        if isinstance(self.backend, ServerBackend):
            served = None if self.backend.memory is None else self.backend.memory(question)
            return None if served is None else serving_need(served, self.model, gpus=gpus)
        trained = None if self.backend.memory is None else self.backend.memory(question)
        if trained is None:
            return None
        reference, nodes = self.reference, question.nodes
        return training_need(trained, self.model, gpus=gpus, nodes=nodes, reference=reference)


def holders_of(subject: StageContext) -> dict[str, ModelHolder]:
    """Who holds the stage's models, by the roles of servers; a trainer's own under that of the
    policy. Of several models that one server loads one after the other it is the largest. Without
    those of which nothing is known."""
    if subject.stage.kind in TRAINERS:
        trained = _trainer(subject)
        return {} if trained is None else {POLICY: trained}
    found: dict[str, ModelHolder] = {}
    for server in leased_servers(subject):
        shapes = [model_shape(subject, role) for role in server.models]
        known = [shape for shape in shapes if shape is not None]
        if server.backend.memory is not None and known:
            found[server.role] = ModelHolder(
                backend=server.backend,
                settings=server.settings,
                place=server.place,
                model=max(known, key=lambda shape: shape.parameters),
                leased=server,
            )
    for role in beside_policy(subject) if POLICY in found else ():
        shape = model_shape(subject, role)
        if shape is not None:
            found[role] = replace(found[POLICY], model=shape)
    return found


def _trainer(subject: StageContext) -> ModelHolder | None:
    backend = subject.table.backends.get(subject.stage.backend)
    model = model_shape(subject)
    if not isinstance(backend, StageBackend) or backend.memory is None or model is None:
        return None
    inputs = subject.stage.inputs
    return ModelHolder(
        backend=backend,
        settings=subject.settings,
        place=subject.settings,
        model=model,
        reference=model_shape(subject, "reference"),
        compared=inputs.get("reference", ()) not in ((), inputs.get("model", ())),
    )
