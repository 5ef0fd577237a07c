"""Writes the tensors of a GGUF file as safetensors files, dequantised to the type that was asked
for. One file at a time is in memory, so that the model may be larger than it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentc.runtime.model_folder.gguf_header import GgufError, GgufTensor
from agentc.runtime.model_folder.gguf_model import (
    ROPE_FACTORS,
    GgufModel,
    hugging_face_name,
    llama3_scaling,
)

FILE_BYTES = 2_000_000_000
"""Of a safetensors file at most, unless one tensor is larger."""
_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_WIDTHS = {"float32": 4, "bfloat16": 2, "float16": 2}


def final_config(source: Path, model: GgufModel) -> dict[str, Any]:
    """What config.json says, with the scaling of positions that a file has as a tensor. Raises
    GgufError."""
    config = dict(model.config)
    if any(tensor.name == ROPE_FACTORS for tensor in model.header.tensors):
        factors = next(t for t in _tensors_of(source) if t.name == ROPE_FACTORS)
        config["rope_parameters"] = llama3_scaling([float(x) for x in factors.data], config)
    return config


def write_tensors(
    source: Path,
    model: GgufModel,
    dtype: str,
    folder: Path,
    report: Callable[[int, int], None],
    file_bytes: int = FILE_BYTES,
) -> int:
    """Write the weights into the folder; returns how many there are. Raises GgufError."""
    tensors = [t for t in model.header.tensors if t.name != ROPE_FACTORS]
    parts = _parts(tensors, _WIDTHS[dtype], file_bytes)
    values = {tensor.name: tensor for tensor in _tensors_of(source)}
    places: dict[str, str] = {}
    done = 0
    for number, part in enumerate(parts, start=1):
        name = _SINGLE if len(parts) == 1 else f"model-{number:05}-of-{len(parts):05}.safetensors"
        arrays: dict[str, Any] = {}
        for tensor in part:
            array = _converted(values[tensor.name], model.config, dtype)
            arrays[hugging_face_name(tensor.name)] = array
            done += 1
            report(done, len(tensors))
        _save(arrays, dtype, folder / name)
        places |= dict.fromkeys(arrays, name)
    weights = sum(tensor.numbers for tensor in tensors)
    if len(parts) > 1:
        index = {
            "metadata": {"total_size": weights * _WIDTHS[dtype]},
            "weight_map": dict(sorted(places.items())),
        }
        (folder / _INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    return weights


def _parts(tensors: list[GgufTensor], width: int, most: int) -> list[list[GgufTensor]]:
    """Tensors in the order of the file, divided so that each part fits into a file."""
    parts: list[list[GgufTensor]] = [[]]
    size = 0
    for tensor in tensors:
        own = tensor.numbers * width
        if parts[-1] and size + own > most:
            parts.append([])
            size = 0
        parts[-1].append(tensor)
        size += own
    return parts


def _tensors_of(source: Path) -> Iterator[Any]:
    from gguf import GGUFReader

    yield from GGUFReader(str(source)).tensors


def _converted(tensor: Any, config: Mapping[str, Any], dtype: str) -> Any:
    """The values of a tensor as an array: float32, float16, or the bits of bfloat16."""
    import numpy
    from gguf import GGMLQuantizationType, quants

    try:
        values = quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
    except NotImplementedError:
        kind = tensor.tensor_type.name
        raise GgufError(f"has the tensor {tensor.name} of the type {kind}, not known") from None
    # Single biases come as rows of one dimension; a shape that differs is an error of the reader.
    values = values.reshape([int(size) for size in reversed(tensor.shape)])
    if not numpy.isfinite(values).all():
        raise GgufError(f"has the tensor {tensor.name} with values that are not finite")
    if config["model_type"] == "llama":
        values = _in_halves(tensor.name, values, config)
    if dtype == "bfloat16":
        bits = quants.quantize(values, GGMLQuantizationType.BF16)
        return numpy.ascontiguousarray(bits).view(numpy.uint16).reshape(values.shape)
    if dtype == "float16":
        if (numpy.abs(values) > numpy.finfo(numpy.float16).max).any():
            raise GgufError(
                f"has the tensor {tensor.name} with values that float16 cannot hold; set "
                "save_dtype: bfloat16"
            )
        return values.astype(numpy.float16)
    return numpy.ascontiguousarray(values)


def _in_halves(name: str, values: Any, config: Mapping[str, Any]) -> Any:
    """Queries and keys of Llama as transformers rotates them, first and second half of a head;
    llama.cpp has the two of a rotation next to each other."""
    part = name.split(".")[2] if name.startswith("blk.") else ""
    heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}
    if part not in heads:
        return values
    count = config[heads[part]]
    rows = values.shape[0]
    pairs = values.reshape(count, rows // count // 2, 2, *values.shape[1:])
    return pairs.swapaxes(1, 2).reshape(values.shape)


def _save(arrays: Mapping[str, Any], dtype: str, path: Path) -> None:
    from safetensors import TensorSpec, serialize_file

    described = {
        name: TensorSpec(
            dtype=dtype,
            shape=array.shape,
            data_ptr=array.ctypes.data,
            data_len=array.nbytes,
        )
        for name, array in arrays.items()
    }
    serialize_file(described, str(path), metadata={"format": "pt"})
