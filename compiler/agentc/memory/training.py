"""training_need: what one training needs, by what its backend keeps.

Every part of it grows, or stays, with more tokens, a larger model and more passes at once, and
falls, or stays, where more processes share.
"""

from __future__ import annotations

from agentc.backend_api.memory import Architecture, Held, Moment, TrainerMemory
from agentc.memory.activations import (
    backward_bytes,
    kept_activations,
    logit_bytes,
    passing_activations,
)
from agentc.memory.need import BASE_BYTES, MemoryNeed, MemoryPart

_CORES = 2
"""Of each process on a GPU: its own thread, which hands work to the GPU, and those beside it (the
backward pass, communication, copies, the checkpoint that is written)."""
_MOMENTS: tuple[Moment, ...] = ("backward", "step", "loss", "reference", "save")


def training_need(
    memory: TrainerMemory,
    model: Architecture,
    *,
    gpus: int,
    nodes: int = 1,
    reference: Architecture | None = None,
) -> MemoryNeed:
    """The need of a training of `model`; `reference` is the model that it is compared with, where
    that is another one. `gpus` is 0 where the processors do the work."""
    amounts = _Amounts(memory, model, reference or model)
    # On GPUs a checkpoint is written from main memory.
    moments = [each for each in _MOMENTS if not gpus or each != "save"]
    parts = max((amounts.parts(moment) for moment in moments), key=_size)
    on_node = -(-memory.processes // nodes)
    offloaded = amounts.offloaded() * on_node
    loaded = memory.loaded * model.parameters
    saving = memory.saving * model.parameters
    # What is loaded before it goes to the GPUs is gone when offloaded numbers come.
    loading = loaded if memory.loads_once else on_node * loaded
    host = on_node * BASE_BYTES + (
        max(loading, offloaded + saving)
        if gpus
        else max(loading, on_node * _size(parts) + offloaded)
    )
    return MemoryNeed(
        parts=parts,
        host=host,
        staging=memory.kept * (memory.checkpoint * model.parameters + 12 * memory.adapters),
        cores=_CORES * on_node if gpus else 0,
    )


class _Amounts:
    """Sizes of one training's parts, for each process."""

    def __init__(self, memory: TrainerMemory, model: Architecture, reference: Architecture) -> None:
        self.memory, self.model, self.reference = memory, model, reference

    def parts(self, moment: Moment) -> tuple[MemoryPart, ...]:
        """What is there at a moment; nothing at one that never comes."""
        if moment == "save" and not self.memory.saving:
            return ()
        held = [each for each in self.memory.held if moment in each.at and not each.offloaded]
        if moment == "reference" and not any(each.of == "reference" for each in held):
            return ()
        found = [MemoryPart(each.name, self.size(each)) for each in held]
        found += [MemoryPart(name, size) for name, size in self.flowing(moment)]
        return tuple(part for part in found if part.size > 0)

    def size(self, held: Held) -> float:
        """Bytes of one kind of numbers in each process."""
        counts = {
            "all": self.model.parameters + self.memory.adapters,
            "trained": self.memory.adapters or self.model.parameters,
            "reference": self.reference.parameters,
        }
        share = self.memory.processes if held.split else 1
        return held.width * counts[held.of] / share

    def offloaded(self) -> float:
        """What each process keeps in main memory instead."""
        return sum(self.size(each) for each in self.memory.held if each.offloaded)

    def flowing(self, moment: Moment) -> list[tuple[str, float]]:
        """What tokens leave at a moment."""
        memory, model = self.memory, self.model
        tokens = memory.sequences * memory.length
        widths = memory.flow, memory.residual
        several = memory.processes > 1
        layers = memory.flow * memory.gathered * model.block if several else 0.0
        ends = memory.ends * (model.parameters - model.layers * model.block) if several else 0.0
        gathered = [("gathered layers", layers), ("embeddings and head", ends)]
        logits = logit_bytes(model, memory.logits, tokens)
        if moment == "reference":
            passing = passing_activations(model, *widths, tokens)
            scores = logits - (4 * model.table if memory.logits.tile else 0)
            return [("activations", passing), ("logits", scores), *gathered]
        if moment == "loss":
            kept = kept_activations(model, memory)
            later = tokens * backward_bytes(model, *widths)
            return [("activations", kept), ("logits", max(logits, later)), *gathered]
        if moment == "backward":
            return [("activations", tokens * memory.residual * model.hidden), *gathered]
        if moment == "save":
            return [("the checkpoint", memory.saving * model.parameters)]
        return []


def _size(parts: tuple[MemoryPart, ...]) -> float:
    return sum(part.size for part in parts)
