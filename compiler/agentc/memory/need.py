"""MemoryNeed: what a training or a server needs of a GPU and of the host, part by part."""

from __future__ import annotations

import math
from dataclasses import dataclass

from agentc.backend_api.memory import (
    Architecture,
    Held,
    Logits,
    Moment,
    ServerMemory,
    TrainerMemory,
)

GB = 1e9
BASE_BYTES = 0.9e9
"""Main memory of a Python process with torch and a trainer's libraries, before any weight: 0.4 to
0.7 GB of libraries on a CPU, more with CUDA's."""
_SPARE = 1.1
_STEP_MIB = 500
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One summand, in bytes."""

    name: str
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """`parts` are what a GPU (or, without GPUs, each process) holds when it holds most; `host` is
    the main memory of a node with all its processes, `staging` the disk beside the result, all in
    bytes. `share` is how much of a GPU may be used. `cores` are those of a node that processes
    which work with GPUs keep busy; 0 without GPUs, where the number of threads is a setting."""

    parts: tuple[MemoryPart, ...]
    host: float
    staging: float = 0.0
    share: float = 1.0
    cores: int = 0

    @property
    def device(self) -> float:
        """What a GPU, or a process, needs."""
        return math.fsum(part.size for part in self.parts)

    def fits(self, card: float) -> bool:
        """Whether a GPU of so many bytes holds it."""
        return self.device <= self.share * card

    @property
    def host_mib(self) -> int:
        """What to ask a cluster for, with a tenth to spare, in steps of 500 MiB."""
        return math.ceil(self.host * _SPARE / _MIB / _STEP_MIB) * _STEP_MIB

    def sum_text(self) -> str:
        """The sum written out: `27.0 weights + 53.9 Adam = 80.9 GB`."""
        shown = [part for part in self.parts if part.size >= 0.0005 * self.device]
        terms = " + ".join(f"{gigabytes(part.size)} {part.name}" for part in shown)
        return f"{terms} = {gigabytes(self.device)} GB"


def gigabytes(size: float) -> str:
    """A number of GB: `108`, `27.0`, `0.34`."""
    amount = size / GB
    digits = 0 if amount >= 99.95 else 1 if amount >= 1 else 2
    return f"{amount:.{digits}f}"


# What passes through a model and is kept: activations for the backward pass, scores over the
# vocabulary.

_NORM = 4
"""Norms are computed in float32, whatever flows."""
_LOG_SUM = 4
"""Bytes for each head and token that attention keeps for its backward pass."""


def layer_bytes(model: Architecture, flow: int, residual: int) -> int:
    """Kept of one token in one layer, for the backward pass.

    Two norms keep their input in float32, the normalised numbers and the result; attention its
    queries, keys and values (each head its own copy) and its result; the gated MLP both products,
    the activation, and what is projected down.
    """
    norms = 2 * model.hidden * (_NORM + residual + flow)
    attention = flow * 4 * model.queries + _LOG_SUM * model.heads
    return norms + attention + 4 * flow * model.intermediate


def backward_bytes(model: Architecture, flow: int, residual: int) -> int:
    """Gradients of one token on the way through a layer, at their widest."""
    return 3 * flow * model.intermediate + 2 * residual * model.hidden


def logit_bytes(model: Architecture, logits: Logits, tokens: int) -> float:
    """Scores over the vocabulary for so many tokens, with what their loss keeps."""
    if logits.tile is None:
        return logits.width * tokens * model.vocabulary
    rows, columns = logits.tile
    tile = min(tokens, rows) * min(model.vocabulary, columns)
    return logits.width * tile + 4 * model.table


def stored_activations(model: Architecture, memory: TrainerMemory) -> float:
    """Of all tokens that a process takes at once, when the loss is there."""
    tokens = memory.sequences * memory.length
    layer = layer_bytes(model, memory.flow, memory.residual)
    ends = model.hidden * (memory.residual + _NORM + memory.residual + memory.flow)
    if memory.checkpointing:
        return tokens * (ends + model.layers * memory.residual * model.hidden + layer)
    return tokens * (ends + model.layers * layer)


def passing_activations(model: Architecture, flow: int, residual: int, tokens: int) -> float:
    """Of so many tokens, where nothing is kept for a backward pass: the widest place of a layer."""
    inside = max(3 * model.intermediate, 2 * model.queries + 2 * model.keys)
    return tokens * (flow * (inside + model.hidden) + 2 * residual * model.hidden)


# training_need: what one training needs, by what its backend keeps.
#
# Every part of it grows, or stays, with more tokens, a larger model and more passes at once, and
# falls, or stays, where more processes share.

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
            kept = stored_activations(model, memory)
            later = tokens * backward_bytes(model, *widths)
            return [("activations", kept), ("logits", max(logits, later)), *gathered]
        if moment == "backward":
            return [("activations", tokens * memory.residual * model.hidden), *gathered]
        if moment == "save":
            return [("the checkpoint", memory.saving * model.parameters)]
        return []


def _size(parts: tuple[MemoryPart, ...]) -> float:
    return sum(part.size for part in parts)


def serving_need(memory: ServerMemory, model: Architecture, *, gpus: int) -> MemoryNeed:
    """The need of one server: of each of its devices, or without GPUs of its process."""
    weights = memory.weights * model.parameters / memory.devices
    each = 2 * model.layers * model.keys * memory.cache / memory.devices
    cache = memory.fixed_cache or memory.window * each
    passing = passing_activations(model, memory.flow, memory.flow, memory.batch) / memory.devices
    logits = memory.logit * memory.replies * model.vocabulary
    parts = (
        MemoryPart("weights", max(0.0, weights - memory.offloaded)),
        MemoryPart("keys and values", cache),
        MemoryPart("activations", passing),
        MemoryPart("logits", logits),
    )
    size = sum(part.size for part in parts)
    base = memory.workers * BASE_BYTES
    host = base + (memory.offloaded * memory.devices + _shard(memory, model) if gpus else size)
    # Each of its processes runs all the time: one that waits for a core makes a GPU wait.
    cores = memory.workers if gpus else 0
    return MemoryNeed(parts=parts, host=host, share=memory.share if gpus else 1.0, cores=cores)


_SHARD = 5e9
"""Hugging Face's files of weights are no larger; one at a time goes through main memory."""


def _shard(memory: ServerMemory, model: Architecture) -> float:
    return min(_SHARD, memory.weights * model.parameters)
