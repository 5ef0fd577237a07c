"""The JSON files of a model directory: sizes and settings of config.json, the tokens that end a
reply of generation_config.json, and what of them a later job would stop at.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MOST_NAMES = 3


@dataclass(frozen=True)
class FolderFault:
    """What is wrong, and what to do about it."""

    message: str
    fix: str

    def __str__(self) -> str:
        return f"{self.message}; {self.fix}"


def shortened(names: Sequence[str]) -> str:
    """A few of many names."""
    text = ", ".join(name[:120] for name in names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return text if more <= 0 else f"{text} and {more} more"


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


_DTYPES = frozenset({
    "auto", "float32", "float", "float64", "double", "float16", "half", "bfloat16",
    "float8_e4m3fn", "float8_e5m2",
})  # fmt: skip
_ROPE_TYPES = ("default", "linear", "dynamic", "yarn", "longrope", "su", "llama3", "mrope")
_ATTENTION = ("_attn_implementation", "attn_implementation", "_attn_implementation_internal")


def setting_faults(config: Mapping[str, Any], shown: str, *, known: bool) -> list[FolderFault]:
    """What is wrong with them; `known`: the type of model is one whose settings are known here."""
    return [
        FolderFault(f"{shown}: config.json has {what}", fix)
        for part in _parts(config)
        for found in (_attention(part), _dtype(part), _quantisation(part), _rope(part, known))
        if found is not None
        for what, fix in (found,)
    ]


def _parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The whole, and what it says of the models within."""
    yield config
    for name, value in config.items():
        if name.endswith("_config") and name != "quantization_config" and isinstance(value, dict):
            yield value


def _attention(config: Mapping[str, Any]) -> tuple[str, str] | None:
    for name in _ATTENTION:
        for value in _names(config.get(name)):
            if not isinstance(value, str) or "/" in value:
                return (
                    f"`{name}: {_short(value)}`, which names code of the hub to be fetched and run",
                    "remove it: jobs choose the implementation of attention themselves",
                )
    return None


def _dtype(config: Mapping[str, Any]) -> tuple[str, str] | None:
    for name in ("dtype", "torch_dtype"):
        for value in _names(config.get(name)):
            plain = value[len("torch.") :] if str(value).startswith("torch.") else value
            if not isinstance(plain, str) or plain not in _DTYPES:
                return (
                    f"`{name}: {_short(value)}`, which is no type of weights",
                    "write the type that the weights have, such as bfloat16",
                )
    return None


def _quantisation(config: Mapping[str, Any]) -> tuple[str, str] | None:
    found = config.get("quantization_config")
    if found is None or isinstance(found, dict):
        return None
    return (
        f"`quantization_config: {_short(found)}`, which is no mapping",
        "remove it if the weights are not quantised, or copy it from where the weights are from",
    )


def _rope(config: Mapping[str, Any], known: bool) -> tuple[str, str] | None:
    for name in ("rope_scaling", "rope_parameters") if known else ():
        found = config.get(name)
        if found is None:
            continue
        kind = found.get("rope_type", found.get("type")) if isinstance(found, dict) else found
        if isinstance(found, dict) and kind in (None, *_ROPE_TYPES):
            continue
        return (
            f"`{name}` of the type {_short(kind)}, which is not known",
            f"write one of {', '.join(_ROPE_TYPES)}, or remove it",
        )
    return None


def _names(value: Any) -> list[Any]:
    """A name, or one for each model within."""
    if value is None:
        return []
    return list(value.values()) if isinstance(value, dict) else [value]


def _short(value: Any) -> str:
    return json.dumps(value)[:60]


GENERATION_FILE = "generation_config.json"


def generation_faults(
    directory: Path,
    names: Collection[str],
    config: Mapping[str, Any],
    rows: int | None,
    shown: str,
) -> list[FolderFault]:
    """What is wrong with the ends of replies in config.json and generation_config.json; `rows` of
    the embeddings. Raises OSError."""
    settings: Mapping[str, Any] = {}
    if GENERATION_FILE in names:
        with (directory / GENERATION_FILE).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        try:
            settings = read_config(content)
        except ConfigFileError as error:
            fix = "correct it, or remove it: without it, replies end as config.json says"
            message = f"{shown}: {GENERATION_FILE} cannot be understood: {error}"
            return [FolderFault(message, fix)]
    for name, written in (
        (GENERATION_FILE, settings.get("eos_token_id")),
        (CONFIG_FILE, of_text(config, "eos_token_id")),
    ):
        wrong = _wrong_end(written, rows)
        if wrong:
            return [
                FolderFault(
                    f"{shown}: {name} has {wrong}",
                    "write the id that tokenizer.json gives the token that ends a reply, or a "
                    "list of such ids",
                )
            ]
    return []


def _wrong_end(written: Any, rows: int | None) -> str:
    ends = written if isinstance(written, list) else [] if written is None else [written]
    for end in ends:
        if not isinstance(end, int) or isinstance(end, bool) or end < 0:
            shown = json.dumps(end)[:60]
            return f"an `eos_token_id` of {shown}, which is no token id"
        if rows is not None and end >= rows:
            return f"an `eos_token_id` of {end}, but the embeddings have {rows} rows"
    return ""
