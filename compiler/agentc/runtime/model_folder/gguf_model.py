"""read_gguf_model: what a GGUF file holds as a model in Hugging Face's terms, and why it cannot be
converted, by its header. `agentc check` and the job that converts it use the same rules.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.runtime.model_folder.config import ConfigFileError, FolderFault, shortened, sizes_of
from agentc.runtime.model_folder.folder import ModelFolder
from agentc.runtime.model_folder.gguf_header import (
    GgufError,
    GgufHeader,
    GgufTensor,
    read_gguf_header,
)
from agentc.runtime.model_folder.weights import Tensor

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""Values of `general.architecture` that are converted, which are also transformers' types."""
PRE_TOKENIZERS = ("gpt-2", "smollm", "llama-bpe", "qwen2")
"""Values of `tokenizer.ggml.pre` that are converted: how text is split before BPE."""
_BYTE_LEVEL = "gpt2"
ROPE_FACTORS = "rope_freqs.weight"
_LLAMA3_FACTORS = (8.0, 32.0)
_LLAMA3 = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_BLOCK = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_DOWNLOAD_AGAIN = "copy or download the file again"
_UNCONVERTED = "give the model's own repository or folder, with safetensors weights"


@dataclass(frozen=True)
class GgufModel:
    """`config` is what config.json will say, without the type of the weights. `quantisation` is the
    type that most weights have."""

    header: GgufHeader
    config: Mapping[str, Any]
    quantisation: str


def read_gguf_folder(path: Path, shown: str) -> ModelFolder:
    """A GGUF file as the folder that is made of it; `shown` is its name in messages."""
    try:
        model = gguf_model(read_gguf_header(path))
        sizes = sizes_of(model.config)
    except (GgufError, ConfigFileError) as error:
        fix = _DOWNLOAD_AGAIN if "truncated" in str(error) else _UNCONVERTED
        return ModelFolder((FolderFault(f"{shown} {error}", fix),))
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        fix = "give a .gguf file, relative to the spec or absolute"
        return ModelFolder((FolderFault(f"{shown} cannot be read: {reason}", fix),))
    tensors = {
        hugging_face_name(tensor.name): Tensor(tensor.type, tensor.shape)
        for tensor in model.header.tensors
        if tensor.name != ROPE_FACTORS
    }
    return ModelFolder((), model.config, sizes, tensors)


def gguf_model(header: GgufHeader) -> GgufModel:
    """The model of a file. Raises GgufError where it cannot be converted as it is."""
    architecture = header.settings.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise GgufError(
            f"has the architecture {architecture!r}; {', '.join(ARCHITECTURES)} can be converted"
        )
    if header.settings.get("general.type", "model") != "model":
        raise GgufError(f"is of the type {header.settings['general.type']!r}, not a whole model")
    if header.settings.get("split.count", 1) > 1:
        raise GgufError("is one part of several; merge them with `llama-gguf-split --merge`")
    settings = _Settings(header.settings, architecture)
    _check_tokenizer(header.settings)
    config = _config(settings, header)
    _check_tensors(header, config)
    counts: dict[str, int] = {}
    for tensor in header.tensors:
        counts[tensor.type] = counts.get(tensor.type, 0) + tensor.numbers
    return GgufModel(header, config, max(counts, key=lambda name: counts[name]))


def hugging_face_name(name: str) -> str:
    """What transformers calls a tensor. Raises GgufError for an unknown one."""
    stem, _, kind = name.rpartition(".")
    parts = stem.split(".")
    if kind in ("weight", "bias"):
        if parts[0] == "blk" and len(parts) == 3 and parts[1].isdigit() and parts[2] in _BLOCK:
            return f"model.layers.{int(parts[1])}.{_BLOCK[parts[2]]}.{kind}"
        if stem in _TOP:
            return f"{_TOP[stem]}.{kind}"
    raise GgufError(f"has the tensor {name[:120]}, which cannot be converted")


class _Settings:
    """Settings of an architecture by their names without it."""

    def __init__(self, settings: Mapping[str, Any], architecture: str) -> None:
        self.architecture = architecture
        self._settings = settings

    def find(self, name: str) -> Any:
        return self._settings.get(f"{self.architecture}.{name}")

    def size(self, name: str, otherwise: int | None = None) -> int:
        value = self.find(name)
        if value is None and otherwise is not None:
            return otherwise
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            shown = "no" if value is None else "an unusable"
            raise GgufError(f"has {shown} `{self.architecture}.{name}`")
        return value

    def number(self, name: str, otherwise: float | None = None) -> float:
        value = self.find(name)
        if value is None and otherwise is not None:
            return otherwise
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            shown = "no" if value is None else "an unusable"
            raise GgufError(f"has {shown} `{self.architecture}.{name}`")
        return _shortest(value)

    def reject(self, name: str, what: str) -> None:
        if self.find(name):
            raise GgufError(f"has {what} (`{self.architecture}.{name}`), which is not converted")


def _shortest(value: float) -> float:
    """The shortest decimal that is the same 32-bit number: 1e-05, not 9.999999747378752e-06."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            return float(text)
    return value


def _check_tokenizer(settings: Mapping[str, Any]) -> None:
    model, pre = settings.get("tokenizer.ggml.model"), settings.get("tokenizer.ggml.pre")
    if model != _BYTE_LEVEL:
        raise GgufError(
            f"has a tokenizer of the type {model!r}; only byte-level BPE (`gpt2`) is converted"
        )
    if pre not in PRE_TOKENIZERS:
        raise GgufError(
            f"has the pre-tokenizer {pre!r}; {', '.join(PRE_TOKENIZERS)} can be converted"
        )
    for name in ("tokens", "token_type", "merges"):
        if not isinstance(settings.get(f"tokenizer.ggml.{name}"), list):
            raise GgufError(f"has no `tokenizer.ggml.{name}`")
    tokens = settings["tokenizer.ggml.tokens"]
    if len(settings["tokenizer.ggml.token_type"]) != len(tokens):
        raise GgufError("has not as many `token_type` as `tokens`")
    for name in ("bos", "eos", "unknown", "padding", "eot", "eom"):
        number = settings.get(f"tokenizer.ggml.{name}_token_id")
        if number is not None and not 0 <= number < len(tokens):
            raise GgufError(f"has a `tokenizer.ggml.{name}_token_id` of {number}, not a token")
    if settings.get("tokenizer.ggml.eos_token_id") is None:
        raise GgufError("has no `tokenizer.ggml.eos_token_id`, at which replies end")
    for name in ("add_eos_token", "add_sep_token", "add_space_prefix"):
        if settings.get(f"tokenizer.ggml.{name}"):
            raise GgufError(f"sets `tokenizer.ggml.{name}`, which is not converted")


def _config(settings: _Settings, header: GgufHeader) -> dict[str, Any]:
    architecture = settings.architecture
    settings.reject("expert_count", "experts")
    settings.reject("attention.sliding_window", "a sliding window")
    hidden, heads = settings.size("embedding_length"), settings.size("attention.head_count")
    head_size = settings.size("attention.key_length", max(1, hidden // heads))
    for name in ("attention.value_length", "rope.dimension_count"):
        if settings.size(name, head_size) != head_size:
            raise GgufError(f"has a `{architecture}.{name}` other than its head size {head_size}")
    rows = next((t.shape[0] for t in header.tensors if t.name == "token_embd.weight"), None)
    tokens = header.settings["tokenizer.ggml.tokens"]
    if rows is None or rows < len(tokens):
        raise GgufError(f"has {len(tokens)} tokens, but {rows or 'no'} embeddings")
    names = {tensor.name for tensor in header.tensors}
    biased = "blk.0.attn_q.bias" in names
    config: dict[str, Any] = {
        "architectures": [ARCHITECTURES[architecture]],
        "model_type": architecture,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": settings.size("feed_forward_length"),
        "num_hidden_layers": settings.size("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": settings.size("attention.head_count_kv", heads),
        "head_dim": head_size,
        "max_position_embeddings": settings.size("context_length"),
        "rms_norm_eps": settings.number("attention.layer_norm_rms_epsilon"),
        "rope_parameters": {
            "rope_theta": settings.number("rope.freq_base", 10000.0),
            **_rope_scaling(settings),
        },
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "tie_word_embeddings": "output.weight" not in names,
        "use_cache": True,
        "vocab_size": rows,
        **{
            f"{name}_token_id": header.settings.get(f"tokenizer.ggml.{key}_token_id")
            for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
        },
    }
    if architecture == "llama":
        config |= {"attention_bias": biased, "mlp_bias": False}
    elif architecture == "qwen2" and not biased:
        raise GgufError("has the architecture 'qwen2', but no biases of attention")
    elif architecture == "qwen3":
        config |= {"attention_bias": biased}
    return config


def _rope_scaling(settings: _Settings) -> dict[str, Any]:
    """The scaling of positions that the settings say; Llama 3's is in a tensor."""
    kind = settings.find("rope.scaling.type") or "none"
    if kind == "none":
        if settings.find("rope.scale_linear") not in (None, 1.0):
            raise GgufError("scales positions by `rope.scale_linear`, which is not converted")
        return {"rope_type": "default"}
    if kind not in ("linear", "yarn"):
        raise GgufError(f"scales positions by {kind!r}; linear and yarn can be converted")
    scaling: dict[str, Any] = {"rope_type": kind, "factor": settings.number("rope.scaling.factor")}
    if kind == "yarn":
        settings.reject("rope.scaling.attn_factor", "a factor of attention")
        original = settings.size("rope.scaling.original_context_length")
        scaling["original_max_position_embeddings"] = original
    return scaling


def llama3_scaling(factors: list[float], config: Mapping[str, Any]) -> dict[str, Any]:
    """The `rope_parameters` of Llama 3.1 and later, of which a file has the resulting factors only.
    Raises GgufError where they are not Llama 3's."""
    theta, size = config["rope_parameters"]["rope_theta"], config["head_dim"]
    for factor in _LLAMA3_FACTORS:
        expected = [_llama3_factor(theta ** (2 * i / size), factor) for i in range(size // 2)]
        if len(factors) == len(expected) and all(
            math.isclose(a, b, rel_tol=1e-4) for a, b in zip(factors, expected, strict=True)
        ):
            return {"rope_theta": theta, "rope_type": "llama3", "factor": factor, **_LLAMA3}
    raise GgufError(f"has factors of positions ({ROPE_FACTORS}) other than Llama 3's")


def _llama3_factor(wavelength: float, factor: float) -> float:
    """By how much a frequency is divided; `wavelength` in positions, without 2 pi."""
    low, high = _LLAMA3["low_freq_factor"], _LLAMA3["high_freq_factor"]
    turns = _LLAMA3["original_max_position_embeddings"] / (2 * math.pi * wavelength)
    if turns > high:
        return 1.0
    if turns < low:
        return factor
    smooth = (turns - low) / (high - low)
    return 1 / ((1 - smooth) / factor + smooth)


def _check_tensors(header: GgufHeader, config: Mapping[str, Any]) -> None:
    """Raises GgufError where the tensors are not those of the architecture."""
    expected = set(_expected(config))
    held = {hugging_face_name(t.name) for t in header.tensors if t.name != ROPE_FACTORS}
    lacking, more = sorted(expected - held), sorted(held - expected)
    if lacking:
        raise GgufError(f"lacks the tensors {shortened(lacking)}")
    if more:
        raise GgufError(
            f"has tensors that a model of the type {config['model_type']} has not: "
            f"{shortened(more)}"
        )
    if any(tensor.name == ROPE_FACTORS for tensor in header.tensors) and (
        config["model_type"] != "llama" or config["rope_parameters"]["rope_type"] != "default"
    ):
        raise GgufError(f"has {ROPE_FACTORS}, which only models of the type llama have")
    for tensor in header.tensors:
        _check_shape(tensor, config)


def _check_shape(tensor: GgufTensor, config: Mapping[str, Any]) -> None:
    heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}
    part = tensor.name.split(".")[2] if tensor.name.startswith("blk.") else ""
    if part in heads and tensor.shape[0] != config[heads[part]] * config["head_dim"]:
        raise GgufError(
            f"has the tensor {tensor.name} of {tensor.shape[0]} rows, not "
            f"{config[heads[part]]} heads of {config['head_dim']}"
        )


def _expected(config: Mapping[str, Any]) -> list[str]:
    kind, biased = config["model_type"], config.get("attention_bias") is True
    parts = [
        f"{name}.weight" for name in _BLOCK.values() if not name.endswith(("q_norm", "k_norm"))
    ]
    if kind == "qwen3":
        parts += ["self_attn.q_norm.weight", "self_attn.k_norm.weight"]
    if kind == "qwen2" or biased:
        parts += [f"self_attn.{name}_proj.bias" for name in "qkv"]
    if biased:
        parts.append("self_attn.o_proj.bias")
    names = ["model.embed_tokens.weight", "model.norm.weight"]
    if not config["tie_word_embeddings"]:
        names.append("lm_head.weight")
    layers = range(min(config["num_hidden_layers"], 1000))
    return names + [f"model.layers.{layer}.{part}" for layer in layers for part in parts]
