"""Headers of safetensors files: the types and shapes of the tensors, without their values."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

_LARGEST_HEADER = 1 << 25
_LFS = b"version https://git-lfs"
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "U16": 16, "I16": 16,
    "F16": 16, "BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "C64": 64,
}  # fmt: skip


class HeaderError(ValueError):
    """A file whose header does not describe it; the message follows the file's name."""


class Tensor(NamedTuple):  # a job's wrapper imports this: dataclasses would cost it 5 ms
    """The type and the shape of a tensor."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def numbers(self) -> int:
        """How many numbers it has."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bits(self) -> int | None:
        """Of each number; None of a type that is not known."""
        return _BITS.get(self.dtype)


def read_header(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name. Raises HeaderError, OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(len(_LFS))
        if start.startswith(_LFS):
            raise HeaderError("is a pointer of Git LFS, not the weights")
        if len(start) < 9:
            raise HeaderError("is empty" if not start else "is shorter than a header")
        length = int.from_bytes(start[:8], "little")
        if length > _LARGEST_HEADER or start[8:9] != b"{":
            raise HeaderError(f"is no safetensors file: the header claims {length} bytes")
        if 8 + length > size:
            raise HeaderError("is truncated: it ends within its header")
        file.seek(8)
        content = file.read(length)
    try:
        header = json.loads(content)
    except (ValueError, RecursionError):
        raise HeaderError("has a header that is no JSON") from None
    if not isinstance(header, dict):
        raise HeaderError("has a header without tensors")
    header.pop("__metadata__", None)
    tensors: dict[str, Tensor] = {}
    places: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        tensors[name], begin, last = _tensor(name, entry)
        places.append((begin, last, name))
    end = 0
    for begin, last, name in sorted(places):
        if begin != end:
            what = "overlaps with" if begin < end else "leaves a gap behind"
            raise HeaderError(f"has a header whose tensor {name[:200]} {what} another")
        end = last
    whole = 8 + length + end
    if size < whole:
        raise HeaderError(f"is truncated: it has {size} of {whole} bytes")
    if size > whole:
        raise HeaderError(f"has {size} bytes, but its header describes {whole}")
    return tensors


def _tensor(name: str, entry: Any) -> tuple[Tensor, int, int]:
    """A tensor, and where its values begin and end."""
    wrong = HeaderError(f"has a header that does not describe the tensor {name[:200]}")
    if not isinstance(entry, dict):
        raise wrong
    dtype: Any = entry.get("dtype")
    shape, offsets = _sizes(entry.get("shape")), _sizes(entry.get("data_offsets"))
    if not isinstance(dtype, str) or shape is None or offsets is None or len(offsets) != 2:
        raise wrong
    tensor = Tensor(dtype, shape)
    if tensor.bits is None:
        raise HeaderError(f"has the tensor {name[:200]} of an unknown type, {dtype[:40]}")
    begin, end = offsets
    bits = tensor.bits
    if end < begin or (bits is not None and (tensor.numbers * bits + 7) // 8 != end - begin):
        raise wrong
    return tensor, begin, end


def _sizes(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(
        isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in value
    ):
        return tuple(value)
    return None
