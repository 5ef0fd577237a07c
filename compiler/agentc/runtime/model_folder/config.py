"""The config.json of a model, as transformers writes and reads it: what it says of the sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CONFIG_FILE = "config.json"
MOST_BYTES = 1 << 20
"""A config.json is a few kilobytes; more is none."""
_SEEING = frozenset(
    ["aria", "aya_vision", "blip-2", "chameleon", "deepseek_vl", "glm4v", "glm4v_moe", "idefics",
     "idefics2", "idefics3", "instructblip", "internvl", "kosmos-2", "lfm2_vl", "llava",
     "llava_next", "llava_next_video", "llava_onevision", "mistral3", "ovis2", "paligemma",
     "qwen2_5_vl", "qwen2_vl", "qwen3_vl", "qwen3_vl_moe", "smolvlm", "video_llava", "vipllava"]
)  # fmt: skip
"""Types of models with pictures that transformers 5.23 loads as no causal language model; it does
so with Gemma 3, Llama 4 and others."""
_KNOWN = ("llama", "mistral", "qwen2")
_LARGEST = 10**9
"""No size of a model is larger; what is would only make sums of no meaning."""


class ConfigFileError(Exception):
    """A config.json that transformers would not take either; the message is for people."""


@dataclass(frozen=True)
class ConfiguredSizes:
    """The sizes of a Llama-type model. `stretched`: positions are scaled by a factor, so that
    `context` alone does not say which sequence is the longest."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    intermediate: int
    vocabulary: int
    tied: bool
    context: int
    biased: bool
    stretched: bool


def read_config(content: bytes) -> dict[str, Any]:
    """The settings of a config.json. Raises ConfigFileError."""
    if len(content) > MOST_BYTES:
        raise ConfigFileError(f"it has more than {MOST_BYTES >> 20} MiB")
    try:
        config = json.loads(content)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ConfigFileError(f"it is no JSON{where}") from None
    if not isinstance(config, dict):
        raise ConfigFileError("it holds no mapping")
    return config


def sizes_of(config: Mapping[str, Any]) -> ConfiguredSizes | None:
    """The sizes of Llama, Mistral and Qwen2; None of a type of model that is not known here.
    Raises ConfigFileError."""
    if config.get("model_type") not in _KNOWN:
        return None
    hidden, heads = _size(config, "hidden_size"), _size(config, "num_attention_heads")
    return ConfiguredSizes(
        hidden=hidden,
        layers=_size(config, "num_hidden_layers"),
        heads=heads,
        kv_heads=_size(config, "num_key_value_heads", heads),
        head_size=_size(config, "head_dim", max(1, hidden // heads)),
        intermediate=_size(config, "intermediate_size"),
        vocabulary=_size(config, "vocab_size"),
        tied=config.get("tie_word_embeddings") is True,
        context=_size(config, "max_position_embeddings"),
        biased=config["model_type"] == "qwen2" or config.get("attention_bias") is True,
        stretched=_stretched(config),
    )


def of_text(config: Mapping[str, Any], name: str) -> Any:
    """A setting of a language model; models that see have it under `text_config`."""
    inner = config.get("text_config")
    if name not in config and isinstance(inner, dict):
        return inner.get(name)
    return config.get(name)


def quantisation_of(config: Mapping[str, Any]) -> str:
    """The method that the weights are quantised by, such as `awq`; "" for weights that are not."""
    found = config.get("quantization_config")
    if not isinstance(found, dict):
        return ""
    method = found.get("quant_method")
    if isinstance(method, str) and method:
        return method
    bits = found.get("load_in_4bit") or found.get("load_in_8bit")
    return "bitsandbytes" if bits else "unknown method"


def seeing_model(config: Mapping[str, Any]) -> str:
    """The class of a model of pictures and text that cannot be loaded as a causal language model;
    "" for others."""
    kind, classes = config.get("model_type"), config.get("architectures")
    if not isinstance(kind, str) or kind not in _SEEING:
        return ""
    return str(classes[0] if isinstance(classes, list) and classes else kind)[:120]


def quantised_bits(config: Mapping[str, Any]) -> int:
    """Bits of a quantised weight, by its settings; 4 where they are not written."""
    found = config.get("quantization_config")
    settings = found if isinstance(found, dict) else {}
    bits = settings.get("bits", settings.get("w_bit"))
    if isinstance(bits, int) and not isinstance(bits, bool) and 0 < bits <= 8:
        return bits
    return 8 if settings.get("load_in_8bit") is True else 4


def _size(config: Mapping[str, Any], name: str, otherwise: int | None = None) -> int:
    """A size, which may be left out or null only where there is another for it."""
    value = config.get(name)
    if value is None and otherwise is not None:
        return otherwise
    if value is None:
        raise ConfigFileError(f"it has no `{name}`")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _LARGEST:
        raise ConfigFileError(f"its `{name}` is {json.dumps(value)[:40]}, not a size")
    return value


def _stretched(config: Mapping[str, Any]) -> bool:
    for name in ("rope_scaling", "rope_parameters"):
        scaling = config.get(name)
        # Llama 3.1 scales too, and its `max_position_embeddings` is what it then reaches.
        if isinstance(scaling, dict) and "factor" in scaling:
            return (scaling.get("rope_type") or scaling.get("type")) != "llama3"
    return False
