"""Small GGUF files, written by the layout of ggml's docs/gguf.md."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

F32 = 0
_ALIGNMENT = 32


def _text(value: str) -> bytes:
    content = value.encode()
    return struct.pack("<Q", len(content)) + content


def _value(value: Any) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<Ii", 5, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    words = bool(value) and isinstance(value[0], str)
    head = struct.pack("<IIQ", 9, 8 if words else 5, len(value))
    return head + b"".join(_text(v) if words else struct.pack("<i", v) for v in value)


def gguf_bytes(
    settings: Mapping[str, Any], tensors: Mapping[str, tuple[int, Sequence[int], bytes]]
) -> bytes:
    """A file of these settings and tensors: type, shape (rows first) and values of each."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(settings))
    for name, value in settings.items():
        head += _text(name) + _value(value)
    data = b""
    for name, (kind, shape, values) in tensors.items():
        head += _text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        head += struct.pack("<IQ", kind, len(data))
        data += values + b"\0" * (-len(values) % _ALIGNMENT)
    return head + b"\0" * (-len(head) % _ALIGNMENT) + data


_QWEN3_SIZE = 128
"""Of a head of qwen3: transformers' own GGUF loader takes no other."""
HIDDEN, MIDDLE, HEADS, KV_HEADS, CONTEXT = 64, 96, 4, 2, 128
TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *map(chr, range(33, 127)), "Ġ", "Ċ", "he"]
MERGES = ["h e"]
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% endif %}"
)


def settings_of(architecture: str = "llama", **changes: Any) -> dict[str, Any]:
    """Settings of a model of one block; a change of None removes one, of names that begin with `_`
    the architecture's."""
    own: dict[str, Any] = {
        "block_count": 1,
        "context_length": CONTEXT,
        "embedding_length": HIDDEN,
        "feed_forward_length": MIDDLE,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 10000.0,
    }
    if architecture == "qwen3":
        own["attention.key_length"] = _QWEN3_SIZE
    found: dict[str, Any] = {
        "general.architecture": architecture,
        "general.name": "tiny",
        "general.license": "apache-2.0",
        **{f"{architecture}.{name}": value for name, value in own.items()},
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm" if architecture == "llama" else "qwen2",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [3, 3, 3, *[1] * (len(TOKENS) - 3)],
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHATML,
        **changes,
    }
    return {name: value for name, value in found.items() if value is not None}


def shapes_of(architecture: str = "llama", tied: bool = True) -> dict[str, tuple[int, ...]]:
    """The tensors of such a model."""
    size = _QWEN3_SIZE if architecture == "qwen3" else HIDDEN // HEADS
    queries, keys = size * HEADS, size * KV_HEADS
    block: dict[str, tuple[int, ...]] = {
        "attn_norm.weight": (HIDDEN,),
        "ffn_norm.weight": (HIDDEN,),
        "attn_q.weight": (queries, HIDDEN),
        "attn_k.weight": (keys, HIDDEN),
        "attn_v.weight": (keys, HIDDEN),
        "attn_output.weight": (HIDDEN, queries),
        "ffn_gate.weight": (MIDDLE, HIDDEN),
        "ffn_up.weight": (MIDDLE, HIDDEN),
        "ffn_down.weight": (HIDDEN, MIDDLE),
    }
    if architecture == "qwen2":
        block |= {"attn_q.bias": (HIDDEN,), "attn_k.bias": (keys,), "attn_v.bias": (keys,)}
    if architecture == "qwen3":
        block |= {"attn_q_norm.weight": (size,), "attn_k_norm.weight": (size,)}
    return {
        "token_embd.weight": (len(TOKENS), HIDDEN),
        "output_norm.weight": (HIDDEN,),
        **({} if tied else {"output.weight": (len(TOKENS), HIDDEN)}),
        **{f"blk.0.{name}": shape for name, shape in block.items()},
    }


def zeros_of(shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, Sequence[int], bytes]]:
    """Tensors of zeros in F32."""
    sizes = {name: shape[0] * (shape[1] if len(shape) > 1 else 1) for name, shape in shapes.items()}
    return {name: (F32, shape, bytes(4 * sizes[name])) for name, shape in shapes.items()}


def write_gguf(path: Path, architecture: str = "llama", **changes: Any) -> Path:
    """A whole file whose weights are zeros."""
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = settings_of(architecture, **changes)
    path.write_bytes(gguf_bytes(settings, zeros_of(shapes_of(architecture))))
    return path
