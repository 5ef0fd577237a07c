"""Shapes of models: facts of published config.json files, and those of models made by a spec.

tests/torch compare the counts of weights with those of the models themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from agentc.backend_api.memory import Architecture
from agentc.kinds.field import Json
from agentc.runtime.model_folder.config import (
    MOST_BYTES,
    ConfigFileError,
    ConfiguredSizes,
    read_config,
    sizes_of,
)


def _shape(
    hidden: int,
    layers: int,
    heads: int,
    kv_heads: int,
    intermediate: int,
    vocabulary: int,
    context: int,
    *,
    tied: bool = False,
    biased: bool = False,
    head_size: int | None = None,
    vision: int = 0,
    head_norms: bool = False,
) -> Architecture:
    return Architecture(
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size or hidden // heads,
        intermediate=intermediate,
        vocabulary=vocabulary,
        tied=tied,
        context=context,
        biased=biased,
        vision=vision,
        head_norms=head_norms,
    )


def _qwen3(
    hidden: int, layers: int, heads: int, intermediate: int, context: int = 40960
) -> Architecture:
    """One of the Qwen3 models below 8 billion weights."""
    return _shape(
        hidden, layers, heads, 8, intermediate, 151936, context,
        tied=True, head_size=128, head_norms=True,
    )  # fmt: skip


PUBLISHED_SHAPES: dict[str, Architecture] = {
    "llama-2-7b": _shape(4096, 32, 32, 32, 11008, 32000, 4096),
    "llama-2-13b": _shape(5120, 40, 40, 40, 13824, 32000, 4096),
    "llama-2-70b": _shape(8192, 80, 64, 8, 28672, 32000, 4096),
    "llama-3-8b": _shape(4096, 32, 32, 8, 14336, 128256, 8192),
    "llama-3-70b": _shape(8192, 80, 64, 8, 28672, 128256, 8192),
    "llama-3.1-8b": _shape(4096, 32, 32, 8, 14336, 128256, 131072),
    "llama-3.1-70b": _shape(8192, 80, 64, 8, 28672, 128256, 131072),
    "llama-3.2-1b": _shape(2048, 16, 32, 8, 8192, 128256, 131072, tied=True),
    "llama-3.2-3b": _shape(3072, 28, 24, 8, 8192, 128256, 131072, tied=True),
    "llama-3.3-70b": _shape(8192, 80, 64, 8, 28672, 128256, 131072),
    "mistral-7b-v0.1": _shape(4096, 32, 32, 8, 14336, 32000, 32768),
    "mistral-7b-instruct-v0.1": _shape(4096, 32, 32, 8, 14336, 32000, 32768),
    "mistral-7b-instruct-v0.2": _shape(4096, 32, 32, 8, 14336, 32000, 32768),
    "mistral-7b-v0.3": _shape(4096, 32, 32, 8, 14336, 32768, 32768),
    "mistral-7b-instruct-v0.3": _shape(4096, 32, 32, 8, 14336, 32768, 32768),
    "qwen2.5-0.5b": _shape(896, 24, 14, 2, 4864, 151936, 32768, tied=True, biased=True),
    "qwen2.5-1.5b": _shape(1536, 28, 12, 2, 8960, 151936, 32768, tied=True, biased=True),
    "qwen2.5-3b": _shape(2048, 36, 16, 2, 11008, 151936, 32768, tied=True, biased=True),
    "qwen2.5-7b": _shape(3584, 28, 28, 4, 18944, 152064, 32768, biased=True),
    "qwen2.5-14b": _shape(5120, 48, 40, 8, 13824, 152064, 32768, biased=True),
    "qwen2.5-32b": _shape(5120, 64, 40, 8, 27648, 152064, 32768, biased=True),
    "qwen2.5-72b": _shape(8192, 80, 64, 8, 29568, 152064, 32768, biased=True),
    "qwen3-0.6b": _qwen3(1024, 28, 16, 3072),
    "qwen3-1.7b": _qwen3(2048, 28, 16, 6144),
    "qwen3-4b": _qwen3(2560, 36, 32, 9728),
    "qwen3-4b-instruct-2507": _qwen3(2560, 36, 32, 9728, 262144),
    "qwen3-4b-thinking-2507": _qwen3(2560, 36, 32, 9728, 262144),
    "qwen2-vl-2b": _shape(
        1536, 28, 12, 2, 8960, 151936, 32768, tied=True, biased=True, vision=665_271_296
    ),
    "qwen2-vl-7b": _shape(3584, 28, 28, 4, 18944, 152064, 32768, biased=True, vision=675_759_104),
    "qwen2-vl-72b": _shape(8192, 80, 64, 8, 29568, 152064, 32768, biased=True, vision=699_356_672),
    "smollm2-135m": _shape(576, 30, 9, 3, 1536, 49152, 8192, tied=True),
    "smollm2-360m": _shape(960, 32, 15, 5, 2560, 49152, 8192, tied=True),
    "smollm2-1.7b": _shape(2048, 24, 32, 32, 8192, 49152, 8192, tied=True),
    "tinyllama-1.1b": _shape(2048, 22, 32, 4, 5632, 32000, 2048),
    "vicuna-7b-v1.5": _shape(4096, 32, 32, 32, 11008, 32000, 4096),
    "vicuna-13b-v1.5": _shape(5120, 40, 40, 40, 13824, 32000, 4096),
}
"""By how repository names start, after the owner, in small letters; further words (`-chat-hf`) say
nothing about the shape."""


def architecture_named(name: str) -> Architecture | None:
    """The shape of a published model, by its repository or folder; None where it is not known."""
    short = name.rstrip("/").rsplit("/", 1)[-1].lower()
    short = re.sub(r"^meta-(?=llama)", "", short)
    found = [key for key in PUBLISHED_SHAPES if re.match(rf"{re.escape(key)}(?![a-z0-9.])", short)]
    return PUBLISHED_SHAPES[max(found, key=len)] if found else None


def scratch_architecture(get: Callable[[str], Json]) -> Architecture | None:
    """The shape of a model that a spec makes, by the settings of its stage; None where they are
    not whole, which others say."""

    def size(name: str) -> int:
        found = get(name)
        return found if isinstance(found, int) and not isinstance(found, bool) else 0

    hidden, layers, heads = size("hidden_size"), size("layers"), size("heads")
    if min(hidden, layers, heads, size("vocab_size")) < 1:
        return None
    return Architecture(
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=size("kv_heads") or heads,
        head_size=hidden // heads,
        intermediate=size("intermediate_size") or 2 * hidden,
        vocabulary=size("vocab_size"),
        tied=get("tie_embeddings") is not False,
        context=size("context"),
        biased=get("architecture") == "qwen2",
    )


# shape_in: the shape of a model by its own config.json. The rules of that file are those of
# `agentc.runtime.model_folder.config`, which jobs use too.

__all__ = ["MOST_BYTES", "ConfigFileError", "ConfiguredShape", "shape_in", "shape_of"]


@dataclass(frozen=True, slots=True)
class ConfiguredShape:
    """`stretched`: positions are scaled by a factor, so that the longest sequence is not said by
    `shape.context` alone."""

    shape: Architecture
    stretched: bool


def shape_in(content: bytes) -> ConfiguredShape | None:
    """What a config.json says; None of a type of model that is not known. Raises
    ConfigFileError."""
    return shape_of(sizes_of(read_config(content)))


def shape_of(sizes: ConfiguredSizes | None) -> ConfiguredShape | None:
    """The same of sizes that were read."""
    if sizes is None:
        return None
    shape = Architecture(
        hidden=sizes.hidden,
        layers=sizes.layers,
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_size=sizes.head_size,
        intermediate=sizes.intermediate,
        vocabulary=sizes.vocabulary,
        tied=sizes.tied,
        context=sizes.context,
        biased=sizes.biased,
    )
    return ConfiguredShape(shape, sizes.stretched)
