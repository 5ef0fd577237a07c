"""Tiny model folders in Hugging Face layout, made without torch: safetensors files by hand."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HIDDEN, LAYERS, ROWS = 16, 1, 320
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": 32,
    "max_position_embeddings": 512,
    "num_attention_heads": 2,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": 2,
    "vocab_size": ROWS,
    "tie_word_embeddings": False,
}
_TYPE = "F32"


def write_safetensors(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """A file of float32 zeros."""
    header: dict[str, Any] = {}
    end = 0
    for name, shape in shapes.items():
        size = 4
        for length in shape:
            size *= length
        header[name] = {"dtype": _TYPE, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


def llama_shapes(
    rows: int = ROWS, layers: int = LAYERS, *, head: bool = True
) -> dict[str, tuple[int, ...]]:
    """The tensors of the model of CONFIG."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (rows, HIDDEN)}
    for number in range(layers):
        block = f"model.layers.{number}."
        shapes |= {f"{block}self_attn.{n}_proj.weight": (HIDDEN, HIDDEN) for n in "qkvo"}
        shapes |= {f"{block}mlp.{name}_proj.weight": (32, HIDDEN) for name in ("gate", "up")}
        shapes[f"{block}mlp.down_proj.weight"] = (HIDDEN, 32)
        shapes |= {
            f"{block}{name}.weight": (HIDDEN,)
            for name in ("input_layernorm", "post_attention_layernorm")
        }
    shapes["model.norm.weight"] = (HIDDEN,)
    return {**shapes, "lm_head.weight": (rows, HIDDEN)} if head else shapes


def tokenizer_text(tokens: int, added: int = 0) -> str:
    """A tokenizer.json of that many tokens, `added` of them beside its model."""
    vocabulary = {f"t{number}": number for number in range(tokens - added)}
    extra = [{"id": number, "content": f"<{number}>"} for number in range(tokens - added, tokens)]
    return json.dumps({"added_tokens": extra, "model": {"type": "BPE", "vocab": vocabulary}})


def write_model_folder(
    folder: Path,
    config: Mapping[str, Any] = CONFIG,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    tokens: int = ROWS,
) -> Path:
    """A whole folder: config.json, tokenizer.json, model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(tokenizer_text(tokens, 2))
    write_safetensors(folder / "model.safetensors", llama_shapes() if shapes is None else shapes)
    return folder
