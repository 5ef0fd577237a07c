"""shape_in: the shape of a model by its own config.json, as transformers writes and reads it.

Only Llama, Mistral and Qwen2 are known here; of others nothing is said. Neighbour:
`architectures.py`, for models that are known by name or by a spec's settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentc.backend_api.memory import Architecture

CONFIG_FILE = "config.json"
MOST_BYTES = 1 << 20
"""A config.json is a few kilobytes; more is none."""
_KNOWN = ("llama", "mistral", "qwen2")
_LARGEST = 10**9
"""No size of a model is larger; what is would only make sums of no meaning."""


class ConfigFileError(Exception):
    """A config.json that transformers would not take either; the message is for people."""


@dataclass(frozen=True, slots=True)
class ConfiguredShape:
    """`stretched`: positions are scaled by a factor, so that the longest sequence is not said by
    `shape.context` alone."""

    shape: Architecture
    stretched: bool


def shape_in(content: bytes) -> ConfiguredShape | None:
    """What a config.json says; None of a type of model that is not known. Raises
    ConfigFileError."""
    if len(content) > MOST_BYTES:
        raise ConfigFileError(f"it has more than {MOST_BYTES >> 20} MiB")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigFileError(f"it is no JSON{where}") from None
    if not isinstance(found, dict):
        raise ConfigFileError("it holds no mapping")
    if found.get("model_type") not in _KNOWN:
        return None
    hidden, heads = _size(found, "hidden_size"), _size(found, "num_attention_heads")
    shape = Architecture(
        hidden=hidden,
        layers=_size(found, "num_hidden_layers"),
        heads=heads,
        kv_heads=_size(found, "num_key_value_heads", heads),
        head_size=_size(found, "head_dim", max(1, hidden // heads)),
        intermediate=_size(found, "intermediate_size"),
        vocabulary=_size(found, "vocab_size"),
        tied=found.get("tie_word_embeddings") is True,
        context=_size(found, "max_position_embeddings"),
        biased=found["model_type"] == "qwen2" or found.get("attention_bias") is True,
    )
    return ConfiguredShape(shape, _stretched(found))


def _size(found: Mapping[str, Any], name: str, otherwise: int | None = None) -> int:
    """A size, which may be left out or null only where there is another for it."""
    value = found.get(name)
    if value is None and otherwise is not None:
        return otherwise
    if value is None:
        raise ConfigFileError(f"it has no `{name}`")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _LARGEST:
        raise ConfigFileError(f"its `{name}` is {json.dumps(value)[:40]}, not a size")
    return value


def _stretched(found: Mapping[str, Any]) -> bool:
    for name in ("rope_scaling", "rope_parameters"):
        scaling = found.get(name)
        # Llama 3.1 scales too, and its `max_position_embeddings` is what it then reaches.
        if isinstance(scaling, dict) and "factor" in scaling:
            return (scaling.get("rope_type") or scaling.get("type")) != "llama3"
    return False
