"""What the model of a stage needs, as a rule and as the plan want to know it: the question that is
put to its backend, and the arithmetic of the answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from agentc.backend_api import ServerBackend, StageBackend
from agentc.backend_api.memory import Architecture, MemoryQuestion
from agentc.ir.module import Stage
from agentc.kinds.field import Json
from agentc.kinds.groups import TRAINERS
from agentc.memory import (
    MemoryNeed,
    card_bytes,
    serving_need,
    training_need,
)
from agentc.passes.checks.model_servers import asked_servers
from agentc.passes.checks.model_shape import model_shape
from agentc.passes.checks.parallel import shape_of
from agentc.passes.checks.subject import Settings, StageContext

CARD = "placement.gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHolder:
    """Who holds the weights of a stage's model: the trainer itself (`settings` and `place` are the
    stage's), or its server. `place` says which machine it gets."""

    backend: StageBackend | ServerBackend
    settings: Settings
    place: Settings
    model: Architecture
    reference: Architecture | None = None
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
        placed = id(entry.placement) if isinstance(entry, Stage) else self.place.sameness
        settings = (self.backend.id, self.settings.sameness, placed)
        return (*settings, self.model, self.reference, tuple(self.changes.items()))

    def get(self, path: str) -> Json:
        """A setting in effect, as the changes have it."""
        if path in self.changes:
            return self.changes[path]
        return (self.place if path.startswith("placement.") else self.settings).get(path)

    def need(self) -> MemoryNeed | None:
        """What it needs; None where its backend does not say."""
        nodes = self.get("placement.nodes")
        several = nodes if isinstance(nodes, int) and nodes > 1 else 1
        question = MemoryQuestion(
            get=self.get, model=self.model, gpus=self.gpus, nodes=several, card=self.card
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


def asked_holders(subject: StageContext) -> dict[str, ModelHolder]:
    """Who holds the models that the stage's environment asks, by their roles; without those of
    which nothing is known."""
    found: dict[str, ModelHolder] = {}
    for role, entry in asked_servers(subject).items():
        served, model = subject.servers.get(entry.name), model_shape(subject, role)
        if served is not None and served[0].memory is not None and model is not None:
            backend, settings = served
            shared = settings.text("scope") == "shared"
            place = settings if shared else subject.settings
            found[role] = ModelHolder(backend=backend, settings=settings, place=place, model=model)
    return found


def holder_of(subject: StageContext) -> ModelHolder | None:
    """Who holds the stage's model; None where it has none, or nothing is known of its shape."""
    if subject.stage.kind in TRAINERS:
        backend = subject.table.backends.get(subject.stage.backend)
        model = model_shape(subject)
        if not isinstance(backend, StageBackend) or backend.memory is None or model is None:
            return None
        return ModelHolder(
            backend=backend,
            settings=subject.settings,
            place=subject.settings,
            model=model,
            reference=model_shape(subject, "reference"),
        )
    served, model = subject.server(), model_shape(subject, "policy")
    if served is None or served[0].memory is None or model is None:
        return None
    server, settings = served
    spread = shape_of(subject)
    shared = settings.text("scope") == "shared"
    place = spread.place if spread is not None else settings if shared else subject.settings
    return ModelHolder(backend=server, settings=settings, place=place, model=model)
