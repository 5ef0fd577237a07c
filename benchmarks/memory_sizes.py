"""The models that `memory.py` trains and serves, and what the compiler says that each takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentc.backend_api import (
    Architecture,
    BackendTable,
    MemoryQuestion,
    ServerBackend,
    StageBackend,
)
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.memory import MemoryNeed, scratch_architecture, serving_need, training_need


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySize:
    """A model and how it is trained: `name` says what weighs."""

    name: str
    model: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)


def _model(
    hidden: int, layers: int, heads: int, kv_heads: int, intermediate: int, vocabulary: int
) -> dict[str, Any]:
    return {
        "hidden_size": hidden,
        "layers": layers,
        "heads": heads,
        "kv_heads": kv_heads,
        "intermediate_size": intermediate,
        "vocab_size": vocabulary,
        "tie_embeddings": False,
        "context": 8192,
    }


NOTHING = MemorySize(
    name="next to nothing", model=_model(64, 1, 2, 2, 64, 512), settings={"max_length": 64}
)
SIZES: tuple[MemorySize, ...] = (
    MemorySize(
        name="wide", model=_model(1024, 4, 16, 16, 2816, 2048), settings={"max_length": 128}
    ),
    MemorySize(name="deep", model=_model(512, 12, 8, 8, 1408, 2048), settings={"max_length": 128}),
    MemorySize(
        name="long rows", model=_model(256, 8, 4, 4, 704, 1024), settings={"max_length": 4096}
    ),
    MemorySize(
        name="long rows, checkpointing",
        model=_model(512, 8, 8, 8, 1408, 1024),
        settings={"max_length": 3072, "gradient_checkpointing": True},
    ),
    MemorySize(
        name="large vocabulary",
        model=_model(256, 4, 4, 4, 704, 32000),
        settings={"max_length": 1024},
    ),
    MemorySize(
        name="grouped heads, two micro-batches",
        model=_model(512, 6, 8, 2, 1408, 2048),
        settings={"max_length": 1024, "global_batch": 2, "micro_batch": 1},
    ),
)
SERVED: tuple[MemorySize, ...] = (
    MemorySize(name="wide", model=SIZES[0].model, settings={"cache_mb": 64}),
    MemorySize(name="wide, bfloat16", model=SIZES[0].model,
               settings={"cache_mb": 64, "dtype": "bfloat16"}),
    MemorySize(name="deep", model=SIZES[1].model, settings={"cache_mb": 96}),
    MemorySize(name="long cache", model=SIZES[2].model, settings={"cache_mb": 192}),
    MemorySize(name="grouped heads", model=SIZES[5].model, settings={"cache_mb": 48}),
    MemorySize(name="large vocabulary", model=_model(512, 4, 8, 8, 1408, 64000),
               settings={"cache_mb": 64}),
)  # fmt: skip
SHARED: Mapping[str, Any] = {
    "global_batch": 1,
    "max_steps": 2,
    "truncation": "right",
    "save_every": 1000,
    "lr": 1e-5,
}
TRAINERS: Mapping[str, Mapping[str, Any]] = {
    "trl.sft": {"dtype": "float32"},
    "trl.dpo": {"dtype": "float32", "beta": 0.1},
    "openrlhf.sft": {"dtype": "bfloat16"},
    "xtuner.sft": {"dtype": "float32"},
}
SERVER = "serve.transformers"


def counted(table: BackendTable, name: str, size: MemorySize) -> MemoryNeed:
    """What the compiler says of one size of a trainer, or of the server."""
    backend, shape = table.backends[name], shape_of(size)
    if isinstance(backend, ServerBackend):
        assert backend.memory is not None
        usual = {each.name: each.default for each in backend.fields}
        question = MemoryQuestion(get=_reader({**usual, **size.settings}), model=shape, gpus=0)
        return serving_need(backend.memory(question), shape, gpus=0)
    kind = kind_named(name.split(".")[1])
    assert isinstance(backend, StageBackend)
    assert backend.memory is not None
    assert kind is not None
    usual = {each.name: each.default for each in (*kind.fields, *backend.options)}
    said = {**usual, **SHARED, **TRAINERS[name], **size.settings}
    question = MemoryQuestion(get=_reader(said), model=shape, gpus=0)
    return training_need(backend.memory(question), shape, gpus=0)


def _reader(settings: Mapping[str, Any]) -> Callable[[str], Json]:
    return lambda path: settings.get(path)


def shape_of(size: MemorySize) -> Architecture:
    """The architecture that `model.scratch` makes of it."""
    found = scratch_architecture(size.model.get)
    assert found is not None
    return found
