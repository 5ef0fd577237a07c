"""How large models are: counted from settings, published, or read from a name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentc.cost.quantities import Quantity
from agentc.runtime.model_folder.config import of_text
from agentc.runtime.model_folder.folder import Needs, read_model_folder
from agentc.runtime.model_folder.hub_cache import snapshot_folder

PUBLISHED: dict[str, float] = {
    "gpt2": 0.124e9,
    "gpt2-medium": 0.355e9,
    "gpt2-large": 0.774e9,
    "gpt2-xl": 1.558e9,
    "roberta-base": 0.125e9,
    "llama-2-7b": 6.738e9,
    "llama-2-13b": 13.016e9,
    "llama-2-70b": 68.977e9,
    "llama-3-8b": 8.030e9,
    "llama-3.1-8b": 8.030e9,
    "llama-3.1-70b": 70.554e9,
    "llama-3.2-1b": 1.236e9,
    "llama-3.2-3b": 3.213e9,
    "llama-3.3-70b": 70.554e9,
    "mistral-7b": 7.242e9,
    "mixtral-8x7b": 46.703e9,
    "qwen2.5-0.5b": 0.494e9,
    "qwen2.5-1.5b": 1.544e9,
    "qwen2.5-3b": 3.086e9,
    "qwen2.5-7b": 7.616e9,
    "qwen2.5-14b": 14.770e9,
    "qwen2.5-32b": 32.764e9,
    "qwen2.5-72b": 72.706e9,
    "qwen3-0.6b": 0.596e9,
    "qwen3-1.7b": 1.721e9,
    "qwen3-4b": 4.022e9,
    "tinyllama-1.1b": 1.100e9,
    "smollm2-135m": 0.1345e9,
    "smollm2-360m": 0.3618e9,
    "smollm2-1.7b": 1.711e9,
    "clip-vit-base-patch32": 0.151e9,
    "clip-vit-large-patch14": 0.428e9,
    "qwen2-vl-2b": 2.209e9,
    "qwen2-vl-7b": 8.291e9,
    "qwen2-vl-72b": 73.406e9,
    "phi-2": 2.780e9,
    "gemma-2b": 2.506e9,
    "gemma-7b": 8.538e9,
}
"""All weights, embeddings included, as the model cards and the hub's safetensors indexes give them.
Keys are how repository names start, after the owner, in small letters."""

ASSUMED = Quantity(7e9, 1.0)
"""Weights of a model of which nothing says how large it is."""
_IN_NAME = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)(b|m)(?![a-z])")


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Weights and blocks of a model; `trained` is False for random weights, whose episodes run
    differently from those of a model that can talk. `known` is False where nothing says how large
    the model is, and the size of a usual one is assumed."""

    parameters: Quantity
    layers: float
    width: float
    trained: bool
    known: bool = True

    @property
    def cache_bytes(self) -> float:
        """Bytes of keys and values for one token in 16 bits, without grouped queries."""
        return 4 * self.layers * self.width


def shape_of_settings(settings: Mapping[str, Any]) -> ModelShape:
    """A new Llama-type model (`model.scratch`): embeddings, attention, gated MLP, norms."""
    hidden, layers = int(settings["hidden_size"]), int(settings["layers"])
    heads = int(settings["heads"])
    kv_heads = int(settings.get("kv_heads") or heads)
    middle = int(settings.get("intermediate_size") or 2 * hidden)
    key_width = hidden * kv_heads // heads
    block = 2 * hidden * hidden + 2 * hidden * key_width + 3 * hidden * middle + 2 * hidden
    tables = 1 if settings.get("tie_embeddings", True) else 2
    count = layers * block + tables * int(settings["vocab_size"]) * hidden + hidden
    # The vocabulary may come out smaller than asked for; nothing else is uncertain.
    return ModelShape(Quantity(float(count), 0.02), layers, hidden, trained=False)


def shape_of_folder(size: Mapping[str, Any]) -> ModelShape:
    """A model in a folder, by what its files say (`plan.job.ModelSize`)."""
    usual = shape_of_count(Quantity(float(size["parameters"])))
    layers, width = size.get("layers") or usual.layers, size.get("hidden") or usual.width
    return ModelShape(usual.parameters, layers, width, trained=True)


def shape_of_encoder(settings: Mapping[str, Any]) -> ModelShape:
    """A new encoder of pictures (`encoder.scratch`): its blocks, patches and projection."""
    width, layers, patch = (int(settings[name]) for name in ("width", "layers", "patch_size"))
    places = (int(settings["image_size"]) // patch) ** 2 + 1
    tables = width * (3 * patch * patch + places + int(settings["features"]))
    return ModelShape(
        Quantity(float(8 * layers * width * width + tables), 0.05), layers, width, trained=False
    )


def shape_of_text_encoder(settings: Mapping[str, Any]) -> ModelShape:
    """A new encoder of texts (`text_encoder.scratch`): RoBERTa's blocks, tables and pooler."""
    width, layers = int(settings["hidden_size"]), int(settings["layers"])
    tables = int(settings["vocab_size"]) + int(settings["context"])
    count = 12 * layers * width * width + (tables + width) * width
    return ModelShape(Quantity(float(count), 0.05), layers, width, trained=False)


def shape_of_name(name: str) -> ModelShape:
    """A downloaded model, by its repository or folder: published, else `7b` in the name (names
    round), else of a size that nobody knows."""
    short = name.rstrip("/").rsplit("/", 1)[-1].lower()
    short = re.sub(r"^meta-(?=llama)", "", short)
    found = max((key for key in PUBLISHED if _starts(short, key)), key=len, default=None)
    if found is not None:
        return shape_of_count(Quantity(PUBLISHED[found]))
    match = _IN_NAME.search(short)
    if match is None:
        return replace(shape_of_count(ASSUMED), known=False)
    experts, number, unit = match.groups()
    count = float(number) * (1e9 if unit == "b" else 1e6)
    if experts:  # experts share their attention blocks
        return shape_of_count(Quantity(0.83 * int(experts) * count, 0.25))
    return shape_of_count(Quantity(count, 0.12))


def shape_of_count(parameters: Quantity, *, trained: bool = True) -> ModelShape:
    """Blocks and width of a usual transformer of that size: 32 blocks at 7e9 weights, growing with
    the cube root; 12 width^2 weights a block."""
    layers = max(2.0, round(32 * (parameters.median / 7e9) ** (1 / 3)))
    width = (parameters.median / (12 * layers)) ** 0.5
    return ModelShape(parameters, layers, width, trained)


def _starts(name: str, key: str) -> bool:
    return name.startswith(key) and (name[len(key) :] == "" or not name[len(key)].isalnum())


# The size of a model that the cache of the Hugging Face hub on this machine already has.

_WEIGHTS_ALONE = Needs(tokenizer=False, language=False)


def cached_size(repo: str, revision: str) -> Mapping[str, Any] | None:
    """As `plan.job.ModelSize` has it; None where the cache lacks the model, or a part of it."""
    return _size_of(snapshot_folder(repo, revision))


@lru_cache(64)
def _size_of(snapshot: Path) -> Mapping[str, Any] | None:
    if not snapshot.is_dir():
        return None
    folder = read_model_folder(snapshot, snapshot.name, _WEIGHTS_ALONE)
    if not folder.parameters:
        return None
    sizes = {
        name: of_text(folder.config, key)
        for name, key in (("layers", "num_hidden_layers"), ("hidden", "hidden_size"))
    }
    return {
        "parameters": folder.parameters,
        **{name: size for name, size in sizes.items() if isinstance(size, int)},
    }
