"""What a GGUF file is, by its header: a model that can be converted, or why it cannot."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.gguf_files import (
    TOKENS,
    gguf_bytes,
    settings_of,
    shapes_of,
    write_gguf,
    zeros_of,
)

from agentc.runtime.model_folder.gguf_header import GgufError, read_gguf_header
from agentc.runtime.model_folder.gguf_model import (
    gguf_model,
    llama3_scaling,
    read_gguf_folder,
)

Written = Callable[[Path], Any]


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_a_model_in_the_terms_of_transformers(architecture: str, tmp_path: Path) -> None:
    model = gguf_model(read_gguf_header(write_gguf(tmp_path / "m.gguf", architecture)))
    config = model.config
    assert model.quantisation == "F32"
    assert (config["model_type"], config["num_hidden_layers"]) == (architecture, 1)
    size = 128 if architecture == "qwen3" else 16
    assert (config["head_dim"], config["vocab_size"]) == (size, len(TOKENS))
    assert config["rms_norm_eps"] == 1e-5  # a 32-bit number, written as people write it
    assert config["rope_parameters"] == {"rope_theta": 10000.0, "rope_type": "default"}
    assert config["tie_word_embeddings"] is True


def test_the_sizes_that_estimates_need(tmp_path: Path) -> None:
    folder = read_gguf_folder(write_gguf(tmp_path / "m.gguf", "qwen2"), "m.gguf")
    assert folder.faults == ()
    assert folder.sizes is not None
    assert folder.parameters == len(TOKENS) * 64 + 64 + 2 * 64 + 3 * 96 * 64 + 12288 + 128
    assert folder.sizes.context == 128


def test_positions_that_are_scaled(tmp_path: Path) -> None:
    scaled: dict[str, Any] = {
        "qwen2.rope.scaling.type": "yarn",
        "qwen2.rope.scaling.factor": 4.0,
        "qwen2.rope.scaling.original_context_length": 32,
    }
    model = gguf_model(read_gguf_header(write_gguf(tmp_path / "m.gguf", "qwen2", **scaled)))
    assert model.config["rope_parameters"] == {
        "rope_theta": 10000.0,
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32,
    }


def test_the_scaling_of_llama_3_is_recovered_from_its_factors() -> None:
    """Of Llama-3.2-1B's head of 64: full frequencies up to a wavelength of 2,048 positions,
    1/32 beyond 8,192."""
    config = {"rope_parameters": {"rope_theta": 500000.0}, "head_dim": 64}
    lengths = [2 * 3.141592653589793 * 500000 ** (2 * i / 64) for i in range(32)]
    factors = [
        1.0
        if length < 2048
        else 32.0
        if length > 8192
        else 1 / ((1 - (smooth := (8192 / length - 1) / 3)) / 32 + smooth)
        for length in lengths
    ]
    scaling = llama3_scaling(factors, config)
    assert (scaling["rope_type"], scaling["factor"]) == ("llama3", 32.0)
    with pytest.raises(GgufError, match="other than Llama 3's"):
        llama3_scaling([1.0] * 32, config)


def _changed(**changes: Any) -> Written:
    return lambda path: write_gguf(path, **changes)


def _content(content: bytes) -> Written:
    return lambda path: path.write_bytes(content)


def _tensors(change: Callable[[dict[str, Any]], object]) -> Written:
    def write(path: Path) -> None:
        tensors = zeros_of(shapes_of())
        change(tensors)
        path.write_bytes(gguf_bytes(settings_of(), tensors))

    return write


WHOLE = gguf_bytes(settings_of(), zeros_of(shapes_of()))
REJECTED: dict[str, tuple[Written, str]] = {
    "empty": (_content(b""), "is empty"),
    "text": (_content(b"Hello. " * 20), "is not a GGUF file"),
    "pickle": (_content(pickle.dumps({"weights": [1.0]})), "is a pickle, which can run code"),
    "zip of pickles": (_content(b"PK\x03\x04" + bytes(60)), "is a PyTorch file (a zip of pickles)"),
    "safetensors": (_content(struct.pack("<Q", 50) + b"{" + bytes(50)), "is a safetensors file"),
    "Git LFS": (_content(b"version https://git-lfs.github.com/spec/v1\n"), "pointer of Git LFS"),
    "GGJT": (_content(b"tjgg" + bytes(60)), "GGJT, a format before GGUF"),
    "version 1": (_content(b"GGUF" + struct.pack("<I", 1) + bytes(60)), "has the GGUF version 1"),
    "big-endian": (_content(b"GGUF" + struct.pack(">I", 3) + bytes(60)), "big-endian machines"),
    "no header": (_content(WHOLE[:100]), "is truncated: it ends within its header"),
    "half of the values": (_content(WHOLE[:-1000]), "is truncated: it has"),
    "long array": (
        _content(WHOLE.replace(struct.pack("<IQ", 8, len(TOKENS)), struct.pack("<IQ", 8, 2**50))),
        "is truncated: it ends within its header",
    ),
    "another architecture": (
        _changed(**{"general.architecture": "gemma3"}),
        "has the architecture 'gemma3'; llama, qwen2, qwen3 can be converted",
    ),
    "sliding window": (
        _changed(architecture="qwen2", **{"qwen2.attention.sliding_window": 64}),
        "has a sliding window (`qwen2.attention.sliding_window`)",
    ),
    "experts": (_changed(**{"llama.expert_count": 8}), "has experts"),
    "part of the rotation": (
        _changed(**{"llama.rope.dimension_count": 8}),
        "has a `llama.rope.dimension_count` other than its head size 16",
    ),
    "unknown scaling": (
        _changed(**{"llama.rope.scaling.type": "longrope"}),
        "scales positions by 'longrope'",
    ),
    "sentencepiece": (
        _changed(**{"tokenizer.ggml.model": "llama"}),
        "has a tokenizer of the type 'llama'",
    ),
    "unknown split": (
        _changed(**{"tokenizer.ggml.pre": "tekken"}),
        "has the pre-tokenizer 'tekken'; gpt-2, smollm, llama-bpe, qwen2 can be converted",
    ),
    "no merges": (_changed(**{"tokenizer.ggml.merges": None}), "has no `tokenizer.ggml.merges`"),
    "no end": (_changed(**{"tokenizer.ggml.eos_token_id": None}), "at which replies end"),
    "end that is no token": (
        _changed(**{"tokenizer.ggml.eos_token_id": 5000}),
        "has a `tokenizer.ggml.eos_token_id` of 5000, not a token",
    ),
    "part of a file": (_changed(**{"split.count": 3}), "is one part of several"),
    "adapter": (_changed(**{"general.type": "adapter"}), "is of the type 'adapter'"),
    "missing tensor": (
        _tensors(lambda tensors: tensors.pop("blk.0.ffn_up.weight")),
        "lacks the tensors model.layers.0.mlp.up_proj.weight",
    ),
    "unknown tensor": (
        _tensors(lambda tensors: tensors.update({"blk.0.ssm_a.weight": (0, (1,), bytes(4))})),
        "has the tensor blk.0.ssm_a.weight, which cannot be converted",
    ),
    "tensor of another type of model": (
        _tensors(lambda tensors: tensors.update({"blk.0.attn_k_norm.weight": (0, (1,), bytes(4))})),
        "has tensors that a model of the type llama has not",
    ),
    "unknown quantisation": (
        _tensors(lambda tensors: tensors.update({"output.weight": (99, (1,), bytes(4))})),
        "has the tensor output.weight of the unknown type 99",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_what_cannot_be_converted_is_rejected_by_name(case: str, tmp_path: Path) -> None:
    write, message = REJECTED[case]
    write(tmp_path / "m.gguf")
    (fault,) = read_gguf_folder(tmp_path / "m.gguf", "m.gguf").faults
    assert fault.message.startswith("m.gguf ")
    assert message in fault.message
    assert fault.fix


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for length in range(0, len(WHOLE), 997):
        path.write_bytes(WHOLE[:length])
        assert read_gguf_folder(path, "m.gguf").faults, length
